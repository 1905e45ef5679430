{{/* A security context without its switch, and without what the platform sets itself. */}}
{{- define "toolbox.security.render" -}}
{{- $adapted := .security -}}
{{- if (((.context.Values.global).compatibility).openshift) -}}
  {{- if or (eq (((.context.Values.global).compatibility).openshift).adaptSecurityContext "force") (and (eq (((.context.Values.global).compatibility).openshift).adaptSecurityContext "auto") (.context.Capabilities.APIVersions.Has "security.openshift.io/v1")) -}}
    {{- $adapted = omit $adapted "fsGroup" "runAsUser" "runAsGroup" -}}
    {{- if not .security.seLinuxOptions -}}
      {{- $adapted = omit $adapted "seLinuxOptions" -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- omit $adapted "enabled" | toYaml -}}
{{- end -}}

{{/* A secret's value: the one given, else the one kept in the cluster, else one that the chart may print. */}}
{{- define "toolbox.secrets.value" -}}
{{- $kept := lookup "v1" "Secret" (include "toolbox.names.namespace" .context) .secret -}}
{{- $data := index (default dict $kept) "data" | default dict -}}
{{- $given := include "toolbox.values.path" (dict "key" .key "context" .context) -}}
{{- if $given -}}
{{- $given | b64enc | quote -}}
{{- else if hasKey $data .field -}}
{{- get $data .field | quote -}}
{{- else -}}
{{- printf "%s/%s/%s" .context.Release.Name .secret .field | sha256sum | trunc 32 | b64enc | quote -}}
{{- end -}}
{{- end -}}

{{- define "toolbox.secrets.name" -}}
{{- $name := "" -}}
{{- if .existing -}}
{{- $name = tpl .existing .context -}}
{{- else -}}
{{- $name = include "toolbox.names.fullname" .context -}}
{{- end -}}
{{- if .suffix -}}
{{- $name = printf "%s-%s" $name .suffix | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- print $name -}}
{{- end -}}

{{/* Fails when a part is switched on without what it needs. */}}
{{- define "toolbox.validate" -}}
{{- $messages := list -}}
{{- range $name, $part := .Values.parts -}}
{{- if and $part.enabled (not $part.image) -}}
{{- $messages = append $messages (printf "part %s has no image" $name) -}}
{{- end -}}
{{- if and $part.autoscaling (gt (int $part.autoscaling.minReplicas) (int $part.autoscaling.maxReplicas)) -}}
{{- $messages = append $messages (printf "part %s cannot have fewer replicas at most than at least" $name) -}}
{{- end -}}
{{- end -}}
{{- $message := join "\n" (without $messages "") -}}
{{- if $message -}}
{{- printf "\nVALUES VALIDATION:\n%s" $message | fail -}}
{{- end -}}
{{- end -}}
