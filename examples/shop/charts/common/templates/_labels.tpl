{{/* Labels of every object: a dict of "root" (the chart's scope) and "component". */}}
{{- define "common.labels" -}}
app.kubernetes.io/part-of: shop
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- range $name, $value := .root.Values.global.labels }}
shop.example.test/{{ $name }}: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "common.selector" -}}
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}
