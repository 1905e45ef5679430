{{/* Where an image comes from. Takes a dict of `image`, `global` and `chart`. */}}
{{- define "toolbox.images.image" -}}
{{- $registry := default .image.registry ((.global).imageRegistry) -}}
{{- $repository := .image.repository -}}
{{- $separator := ":" -}}
{{- $termination := .image.tag | toString -}}
{{- if not .image.tag -}}
  {{- if .chart -}}
    {{- $termination = .chart.AppVersion | toString -}}
  {{- end -}}
{{- end -}}
{{- if .image.digest -}}
    {{- $separator = "@" -}}
    {{- $termination = .image.digest | toString -}}
{{- end -}}
{{- if $registry -}}
    {{- printf "%s/%s%s%s" $registry $repository $separator $termination -}}
{{- else -}}
    {{- printf "%s%s%s" $repository $separator $termination -}}
{{- end -}}
{{- end -}}

{{/* Names of pull secrets, each once. Takes a dict of `images` and `context`. */}}
{{- define "toolbox.images.pullSecrets" -}}
{{- $names := list -}}
{{- range ((.context.Values.global).imagePullSecrets) -}}
  {{- if kindIs "map" . -}}
    {{- $names = append $names (include "toolbox.values.render" (dict "value" .name "context" $.context)) -}}
  {{- else -}}
    {{- $names = append $names (include "toolbox.values.render" (dict "value" . "context" $.context)) -}}
  {{- end -}}
{{- end -}}
{{- range .images -}}
  {{- range .pullSecrets -}}
    {{- $names = append $names (include "toolbox.values.render" (dict "value" (kindIs "map" . | ternary .name .) "context" $.context)) -}}
  {{- end -}}
{{- end -}}
{{- if (not (empty $names)) -}}
imagePullSecrets:
  {{- range $names | uniq }}
  - name: {{ . }}
  {{- end }}
{{- end -}}
{{- end -}}

{{/* The version in an image's tag, for labels. Takes a dict of `imageRoot` and `chart`. */}}
{{- define "toolbox.images.version" -}}
{{- $tag := .image.tag | toString -}}
{{- $parts := regexFindAll "^([0-9]+)\\.([0-9]+)\\.([0-9]+)" $tag -1 -}}
{{- if $parts -}}
{{- first $parts -}}
{{- else -}}
{{- .chart.AppVersion -}}
{{- end -}}
{{- end -}}
