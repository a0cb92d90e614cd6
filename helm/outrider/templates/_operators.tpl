{{/*
Refuses values that need an operator which the cluster does not have. The API server would refuse its objects one by one,
without a word about what to do.

A list of APIs that names kinds is that of a cluster: helm install and upgrade ask for it, and Argo CD passes it on. Where
helm template or helm lint ask no cluster, groups of Kubernetes' own are all they know, and nothing is refused.
*/}}
{{- define "outrider.checkOperators" -}}
{{- $known := .Capabilities.APIVersions -}}
{{- if $known.Has "apps/v1/Deployment" -}}
{{- $missing := list -}}
{{- range (include "outrider.operators" . | fromYaml).needed -}}
{{- if not ($known.Has .api) -}}
{{- $missing = append $missing (printf "%s needs %s, and the cluster has no %s: install it, or %s" .value .operator .api .instead) -}}
{{- end -}}
{{- end -}}
{{- if $missing -}}
{{- $missing | join "\n" | fail -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What the values need beside Kubernetes, as YAML: {needed: [{value, operator, api, instead}]}. */}}
{{- define "outrider.operators" -}}
needed:
  {{- range $role := (include "outrider.pods" . | fromJson).roles }}
  {{- if eq (index $.Values $role).autoscaling.type "keda" }}
  - value: {{ $role }}.autoscaling.type
    operator: KEDA
    api: keda.sh/v1alpha1/ScaledObject
    instead: set hpa or none
  {{- end }}
  {{- end }}
  {{- if ne .Values.monitoring.monitor.kind "none" }}
  - value: monitoring.monitor.kind
    operator: the Prometheus operator
    api: monitoring.coreos.com/v1/{{ .Values.monitoring.monitor.kind }}
    instead: set none
  {{- end }}
  {{- if .Values.monitoring.rules.enabled }}
  - value: monitoring.rules.enabled
    operator: the Prometheus operator
    api: monitoring.coreos.com/v1/PrometheusRule
    instead: set false
  {{- end }}
  {{- if .Values.tls.certManager.enabled }}
  - value: tls.certManager.enabled
    operator: cert-manager
    api: cert-manager.io/v1/Certificate
    instead: set false and name a Secret in tls.existingSecret
  {{- end }}
  {{- if .Values.httpRoute.enabled }}
  - value: httpRoute.enabled
    operator: the Gateway API
    api: gateway.networking.k8s.io/v1/HTTPRoute
    instead: set false
  {{- end }}
{{- end -}}
