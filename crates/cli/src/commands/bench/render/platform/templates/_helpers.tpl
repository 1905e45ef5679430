{{/* The image of a part. */}}
{{- define "platform.image" -}}
{{ include "toolbox.images.image" (dict "image" .part.image "global" .context.Values.global "chart" .context.Chart) }}
{{- end -}}

{{- define "platform.serviceAccountName" -}}
{{- if .part.serviceAccount.create -}}
    {{ default (include "toolbox.names.part" (dict "part" .name "context" .context)) .part.serviceAccount.name }}
{{- else -}}
    {{ default "default" .part.serviceAccount.name }}
{{- end -}}
{{- end -}}

{{- define "platform.labels" -}}
{{- $labels := include "toolbox.labels.standard" (dict "custom" .context.Values.commonLabels "context" .context) -}}
{{ $labels }}
app.kubernetes.io/part-of: {{ .context.Chart.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end -}}

{{- define "platform.annotations" -}}
{{- $annotations := list .extra .context.Values.commonAnnotations -}}
{{- if or .extra .context.Values.commonAnnotations }}
annotations: {{- include "toolbox.values.merge" (dict "values" $annotations "context" .context) | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "platform.podTemplate" -}}
{{- $part := .part -}}
{{- $context := .context -}}
{{- $labels := include "toolbox.values.merge" (dict "values" (list $part.podLabels $context.Values.commonLabels) "context" $context) | fromYaml -}}
metadata:
  labels: {{- include "toolbox.labels.standard" (dict "custom" $labels "context" $context) | nindent 4 }}
    app.kubernetes.io/component: {{ .name }}
  annotations:
    checksum/config: {{ $part.config | toYaml | sha256sum }}
    {{- if $part.podAnnotations }}
    {{- include "toolbox.values.render" (dict "value" $part.podAnnotations "context" $context) | nindent 4 }}
    {{- end }}
spec:
  {{- include "toolbox.images.pullSecrets" (dict "images" (list $part.image) "context" $context) | nindent 2 }}
  serviceAccountName: {{ include "platform.serviceAccountName" . }}
  automountServiceAccountToken: {{ $part.serviceAccount.automount }}
  {{- if $part.affinity }}
  affinity: {{- include "toolbox.values.render" (dict "value" $part.affinity "context" $context) | nindent 4 }}
  {{- else }}
  affinity:
    podAffinity: {{- include "toolbox.affinities.pods" (dict "type" $part.podAffinityPreset "part" .name "custom" $labels "context" $context) | nindent 6 }}
    podAntiAffinity: {{- include "toolbox.affinities.pods" (dict "type" $part.podAntiAffinityPreset "part" .name "custom" $labels "context" $context) | nindent 6 }}
    nodeAffinity: {{- include "toolbox.affinities.nodes" (dict "type" $part.nodeAffinityPreset.type "key" $part.nodeAffinityPreset.key "values" $part.nodeAffinityPreset.values) | nindent 6 }}
  {{- end }}
  {{- if $part.nodeSelector }}
  nodeSelector: {{- include "toolbox.values.render" (dict "value" $part.nodeSelector "context" $context) | nindent 4 }}
  {{- end }}
  {{- if $part.tolerations }}
  tolerations: {{- include "toolbox.values.render" (dict "value" $part.tolerations "context" $context) | nindent 4 }}
  {{- end }}
  {{- if $part.podSecurityContext.enabled }}
  securityContext: {{- include "toolbox.security.render" (dict "security" $part.podSecurityContext "context" $context) | nindent 4 }}
  {{- end }}
  containers:
    - name: {{ .name }}
      image: {{ include "platform.image" . }}
      imagePullPolicy: {{ $part.image.pullPolicy | quote }}
      {{- if $part.containerSecurityContext.enabled }}
      securityContext: {{- include "toolbox.security.render" (dict "security" $part.containerSecurityContext "context" $context) | nindent 8 }}
      {{- end }}
      {{- if $part.command }}
      command: {{- include "toolbox.values.render" (dict "value" $part.command "context" $context) | nindent 8 }}
      {{- end }}
      {{- if $part.args }}
      args: {{- include "toolbox.values.render" (dict "value" $part.args "context" $context) | nindent 8 }}
      {{- end }}
      env:
        - name: PART
          value: {{ .name | upper | quote }}
        - name: DATABASE_HOST
          value: {{ include "toolbox.names.dependency" (dict "chartName" "postgresql" "chartValues" (default dict $context.Values.postgresql) "context" $context) | quote }}
        {{- range $key, $value := $part.config }}
        - name: {{ $key | snakecase | upper }}
          value: {{ include "toolbox.values.render" (dict "value" (toString $value) "context" $context) | quote }}
        {{- end }}
        {{- if $part.extraEnvVars }}
        {{- include "toolbox.values.render" (dict "value" $part.extraEnvVars "context" $context) | nindent 8 }}
        {{- end }}
      envFrom:
        - secretRef:
            name: {{ include "toolbox.secrets.name" (dict "existing" $part.existingSecret "suffix" .name "context" $context) }}
      ports:
        {{- range $port := $part.ports }}
        - name: {{ $port.name }}
          containerPort: {{ $port.port | int }}
          protocol: {{ $port.protocol | default "TCP" }}
        {{- end }}
      {{- range $probe := list "startup" "liveness" "readiness" }}
      {{- $settings := index $part (printf "%sProbe" $probe) }}
      {{- if $settings.enabled }}
      {{ $probe }}Probe: {{- include "toolbox.values.render" (dict "value" (omit $settings "enabled") "context" $context) | nindent 8 }}
        httpGet:
          path: {{ $part.healthPath | quote }}
          port: {{ (first $part.ports).name }}
      {{- end }}
      {{- end }}
      {{- if $part.resources }}
      resources: {{- toYaml $part.resources | nindent 8 }}
      {{- else if ne $part.resourcesPreset "none" }}
      resources: {{- include "toolbox.resources.preset" (dict "type" $part.resourcesPreset) | nindent 8 }}
      {{- end }}
      volumeMounts:
        - name: empty-dir
          mountPath: /tmp
          subPath: tmp-dir
        {{- if $part.persistence.enabled }}
        - name: data
          mountPath: {{ $part.persistence.mountPath }}
        {{- end }}
  volumes:
    - name: empty-dir
      emptyDir: {}
    {{- if $part.extraVolumes }}
    {{- include "toolbox.values.render" (dict "value" $part.extraVolumes "context" $context) | nindent 4 }}
    {{- end }}
{{- end -}}
