{{- define "operator.name" -}}{{ .Release.Name }}-operator{{- end -}}

{{- define "operator.labels" }}
    app: operator
    release: {{ .Release.Name }}
    chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "operator.args" -}}
{{- $args := list (printf "--log-level=%s" .Values.logLevel) }}
{{- with .Values.watch }}{{ $args = append $args (printf "--watch=%s" (join "," .)) }}{{ end }}
{{- range .Values.features }}{{ $args = append $args (printf "--enable-%s" .) }}{{ end }}
{{- $args | toYaml }}
{{- end -}}

{{- define "operator.image" -}}
{{ .name }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag }}{{ end }}
{{- end -}}
