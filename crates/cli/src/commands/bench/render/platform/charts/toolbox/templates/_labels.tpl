{{/* The labels of every object; the user's come first. Takes a dict of `custom` and `context`. */}}
{{- define "toolbox.labels.standard" -}}
{{- if and (hasKey . "custom") (hasKey . "context") -}}
{{- $default := dict "app.kubernetes.io/name" (include "toolbox.names.name" .context) "helm.sh/chart" (include "toolbox.names.chart" .context) "app.kubernetes.io/instance" .context.Release.Name "app.kubernetes.io/managed-by" .context.Release.Service -}}
{{- with .context.Chart.AppVersion -}}
{{- $_ := set $default "app.kubernetes.io/version" (. | replace "+" "_" | toString) -}}
{{- end -}}
{{ template "toolbox.values.merge" (dict "values" (list .custom $default) "context" .context) }}
{{- else -}}
app.kubernetes.io/name: {{ include "toolbox.names.name" . }}
helm.sh/chart: {{ include "toolbox.names.chart" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Chart.AppVersion }}
app.kubernetes.io/version: {{ . | quote }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The labels that selectors use; they never change in the life of a release. */}}
{{- define "toolbox.labels.match" -}}
{{- if and (hasKey . "custom") (hasKey . "context") -}}
{{ merge (pick (include "toolbox.values.render" (dict "value" .custom "context" .context) | fromYaml) "app.kubernetes.io/name" "app.kubernetes.io/instance") (dict "app.kubernetes.io/name" (include "toolbox.names.name" .context) "app.kubernetes.io/instance" .context.Release.Name) | toYaml }}
{{- else -}}
app.kubernetes.io/name: {{ include "toolbox.names.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
{{- end -}}
