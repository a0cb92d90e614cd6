{{/*
The number of a role's pods, empty where the Deployment must not say one: of {root, role, values}.

Where an autoscaler sets the number, the Deployment repeats what runs in the cluster. Without a number an upgrade that turns
autoscaling on would take the field away, and Kubernetes would go down to one pod at once, whatever the disruption
budget. Where no cluster is asked (helm template), or has no such Deployment yet, the number is minReplicas.
*/}}
{{- define "outrider.replicas" -}}
{{- $scaling := .values.autoscaling -}}
{{- if eq $scaling.type "none" -}}
{{- .values.replicas | int -}}
{{- else if eq $scaling.replicas "keep" -}}
{{- $name := printf "%s-%s" (include "outrider.fullname" .root) .role -}}
{{- $live := lookup "apps/v1" "Deployment" .root.Release.Namespace $name | default dict -}}
{{- dig "spec" "replicas" 0 $live | int | max $scaling.minReplicas | min $scaling.maxReplicas -}}
{{- end -}}
{{- end -}}
