{{- define "database.fullname" -}}
{{- printf "%s-database" .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "database.secretName" -}}
{{- .Values.auth.existingSecret | default (include "database.fullname" .) -}}
{{- end -}}

{{- define "database.labels" -}}
{{- $labels := dict "app.kubernetes.io/name" .Chart.Name "app.kubernetes.io/instance" .Release.Name }}
{{- $_ := set $labels "app.kubernetes.io/managed-by" .Release.Service }}
{{- toYaml $labels }}
{{- end -}}

{{- define "database.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
