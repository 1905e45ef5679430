{{- define "toolbox.affinities.nodes.soft" -}}
preferredDuringSchedulingIgnoredDuringExecution:
  - preference:
      matchExpressions:
        - key: {{ .key }}
          operator: In
          values:
            {{- range .values }}
            - {{ . | quote }}
            {{- end }}
    weight: 1
{{- end -}}

{{- define "toolbox.affinities.nodes.hard" -}}
requiredDuringSchedulingIgnoredDuringExecution:
  nodeSelectorTerms:
    - matchExpressions:
        - key: {{ .key }}
          operator: In
          values:
            {{- range .values }}
            - {{ . | quote }}
            {{- end }}
{{- end -}}

{{- define "toolbox.affinities.nodes" -}}
  {{- if eq .type "soft" -}}
    {{- include "toolbox.affinities.nodes.soft" . -}}
  {{- else if eq .type "hard" -}}
    {{- include "toolbox.affinities.nodes.hard" . -}}
  {{- end -}}
{{- end -}}

{{- define "toolbox.affinities.topologyKey" -}}
{{ .topologyKey | default "kubernetes.io/hostname" -}}
{{- end -}}

{{/* Pods of a part apart from, or beside, each other. Takes a dict of `type`, `part` and `context`. */}}
{{- define "toolbox.affinities.pods.term" -}}
labelSelector:
  matchLabels: {{- (include "toolbox.labels.match" (dict "custom" (default dict .custom) "context" .context)) | nindent 4 }}
    {{- if .part }}
    {{ printf "app.kubernetes.io/component: %s" .part }}
    {{- end }}
    {{- range $key, $value := .extra }}
    {{ $key }}: {{ $value | quote }}
    {{- end }}
topologyKey: {{ include "toolbox.affinities.topologyKey" (dict "topologyKey" .topologyKey) }}
{{- end -}}

{{- define "toolbox.affinities.pods" -}}
  {{- if eq .type "soft" -}}
preferredDuringSchedulingIgnoredDuringExecution:
  - podAffinityTerm: {{- include "toolbox.affinities.pods.term" . | nindent 6 }}
    weight: 1
  {{- else if eq .type "hard" -}}
requiredDuringSchedulingIgnoredDuringExecution:
  - {{- include "toolbox.affinities.pods.term" . | nindent 4 }}
  {{- end -}}
{{- end -}}
