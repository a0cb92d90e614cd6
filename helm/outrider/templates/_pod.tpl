{{/*
The pods of a role, metadata and spec: of {root, role}. Where the coordinator is a sidecar, the verifier's pods hold
both, and what concerns a pod as a whole is the verifier's.
*/}}
{{- define "outrider.podTemplate" -}}
{{- $root := .root -}}
{{- $role := .role -}}
{{- $values := index $root.Values .role -}}
{{- $together := (include "outrider.together" . | fromJson).roles -}}
{{- $scopes := list -}}
{{- range $together -}}
{{- $scopes = append $scopes (dict "root" $root "role" . "component" $role "values" (index $root.Values .)) -}}
{{- end -}}
metadata:
  labels:
    # Without the chart's version, which would make new pods of pods that do not change.
    {{- include "outrider.selector" (dict "root" $root "component" $role) | nindent 4 }}
    {{- with merge (dict) $values.podLabels $root.Values.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # A changed configuration is a changed pod.
    {{- range $scopes }}
    checksum/config-{{ .role }}: {{ include "outrider.config" . | sha256sum }}
    {{- end }}
    {{- with merge (dict) $values.podAnnotations $root.Values.annotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "outrider.serviceAccountName" $root }}
  # No pod calls the Kubernetes API, and variables of other services could be taken for settings.
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds }}
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- range $key := list "priorityClassName" "runtimeClassName" "schedulerName" }}
  {{- with index $values $key }}
  {{ $key }}: {{ . }}
  {{- end }}
  {{- end }}
  securityContext:
    {{- toYaml $values.podSecurityContext | nindent 4 }}
  {{- with include "outrider.initContainers" (dict "scopes" $scopes) }}
  {{- . | nindent 2 }}
  {{- end }}
  containers:
    {{- range $scopes }}
    {{- printf "- %s" (include "outrider.container" . | indent 2 | trim) | nindent 4 }}
    {{- with .values.containers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- end }}
  volumes:
    {{- range $scopes }}
    {{- include "outrider.volumes" . | nindent 4 }}
    {{- end }}
    {{- with include "outrider.secretVolumes" (dict "root" $root "roles" $together) | trim }}
    {{- . | nindent 4 }}
    {{- end }}
  {{- range $key := list "nodeSelector" "affinity" "tolerations" }}
  {{- with index $values $key }}
  {{ $key }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  {{- with $values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- range . }}
    - {{ toYaml . | indent 6 | trim }}
      {{- if not .labelSelector }}
      labelSelector:
        matchLabels:
          {{- include "outrider.selector" (dict "root" $root "component" $role) | nindent 10 }}
      {{- end }}
    {{- end }}
  {{- end }}
{{- end -}}

{{/* The init containers of a pod: of {scopes}, those of its roles. */}}
{{- define "outrider.initContainers" -}}
{{- $all := list -}}
{{- range .scopes -}}
{{- $all = concat $all .values.initContainers -}}
{{- if .values.download.enabled -}}
{{- $all = append $all (include "outrider.download" . | fromYaml) -}}
{{- end -}}
{{- end -}}
{{- with $all -}}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{/*
The strategy of a role's Deployment: of {root, role, values}. A pod that needs a GPU, or a volume that one node at a
time can mount, would wait for its predecessor to go; so that one goes first.
*/}}
{{- define "outrider.strategy" -}}
{{- $waits := and (eq .values.cache.type "claim") (not (has "ReadWriteMany" .values.cache.accessModes)) -}}
{{- range $resource, $_ := default dict .values.resources.limits -}}
{{- if or (contains "/gpu" $resource) (contains "nvidia.com/mig" $resource) -}}{{- $waits = true -}}{{- end -}}
{{- end -}}
{{- if .values.strategy -}}
{{- toYaml .values.strategy -}}
{{- else -}}
type: RollingUpdate
rollingUpdate:
  maxSurge: {{ ternary 0 1 $waits }}
  maxUnavailable: {{ ternary 1 0 $waits }}
{{- end -}}
{{- end -}}
