{{/* A value that may hold a template. Takes a dict of `value`, `context` and maybe `scope`. */}}
{{- define "toolbox.values.render" -}}
{{- $value := typeIs "string" .value | ternary .value (.value | toYaml) -}}
{{- if contains "{{" (toJson .value) -}}
  {{- if .scope -}}
    {{- tpl (cat "{{- with $.RelativeScope -}}" $value "{{- end }}") (merge (dict "RelativeScope" .scope) .context) -}}
  {{- else -}}
    {{- tpl $value .context -}}
  {{- end -}}
{{- else -}}
  {{- $value -}}
{{- end -}}
{{- end -}}

{{/* Several maps as one; the first to have a key wins. Takes a dict of `values` and `context`. */}}
{{- define "toolbox.values.merge" -}}
{{- $merged := dict -}}
{{- range .values -}}
{{- $merged = include "toolbox.values.render" (dict "value" . "context" $.context) | fromYaml | merge $merged -}}
{{- end -}}
{{ $merged | toYaml }}
{{- end -}}

{{/* A value by its path, such as "auth.password". Takes a dict of `key` and `context`. */}}
{{- define "toolbox.values.path" -}}
{{- $value := .context.Values -}}
{{- range splitList "." .key -}}
{{- $value = ternary (get $value .) dict (hasKey (default dict $value) .) -}}
{{- end -}}
{{- printf "%v" (default "" $value) -}}
{{- end -}}
