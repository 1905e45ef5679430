{{- define "toolbox.capabilities.kubeVersion" -}}
{{- default (default .Capabilities.KubeVersion.Version .Values.kubeVersion) ((.Values.global).kubeVersion) -}}
{{- end -}}

{{- define "toolbox.capabilities.deployment" -}}
{{- print "apps/v1" -}}
{{- end -}}

{{- define "toolbox.capabilities.cronjob" -}}
{{- $version := include "toolbox.capabilities.kubeVersion" . -}}
{{- if and (not (empty $version)) (semverCompare "<1.21-0" $version) -}}
{{- print "batch/v1beta1" -}}
{{- else -}}
{{- print "batch/v1" -}}
{{- end -}}
{{- end -}}

{{- define "toolbox.capabilities.ingress" -}}
{{- $version := include "toolbox.capabilities.kubeVersion" . -}}
{{- if and (not (empty $version)) (semverCompare "<1.19-0" $version) -}}
{{- print "networking.k8s.io/v1beta1" -}}
{{- else -}}
{{- print "networking.k8s.io/v1" -}}
{{- end -}}
{{- end -}}

{{- define "toolbox.capabilities.policy" -}}
{{- $version := include "toolbox.capabilities.kubeVersion" . -}}
{{- if and (not (empty $version)) (semverCompare "<1.21-0" $version) -}}
{{- print "policy/v1beta1" -}}
{{- else -}}
{{- print "policy/v1" -}}
{{- end -}}
{{- end -}}

{{- define "toolbox.capabilities.hpa" -}}
{{- if .Capabilities.APIVersions.Has "autoscaling/v2" -}}
{{- print "autoscaling/v2" -}}
{{- else -}}
{{- print "autoscaling/v2beta2" -}}
{{- end -}}
{{- end -}}
