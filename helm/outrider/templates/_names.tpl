{{/* What every object of the release is called: the release, with the chart's name if it lacks it. */}}
{{- define "outrider.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The role whose pods a role is in: of {root, role}. */}}
{{- define "outrider.component" -}}
{{- $isBeside := and (eq .role "coordinator") (eq (include "outrider.isSidecar" .root) "true") -}}
{{- ternary "verifier" .role $isBeside -}}
{{- end -}}

{{/* Whether the coordinator runs beside each verifier. */}}
{{- define "outrider.isSidecar" -}}
{{- and .Values.coordinator.enabled (eq .Values.coordinator.placement "sidecar") -}}
{{- end -}}

{{/* The roles that run, as JSON: {roles: [...]}. */}}
{{- define "outrider.roles" -}}
{{- $roles := list -}}
{{- range list "coordinator" "drafter" "verifier" -}}
{{- if (index $.Values .).enabled -}}{{- $roles = append $roles . -}}{{- end -}}
{{- end -}}
{{- dict "roles" $roles | toJson -}}
{{- end -}}

{{/* The roles that have pods of their own, likewise. */}}
{{- define "outrider.pods" -}}
{{- $roles := (include "outrider.roles" . | fromJson).roles -}}
{{- if eq (include "outrider.isSidecar" .) "true" -}}{{- $roles = without $roles "coordinator" -}}{{- end -}}
{{- dict "roles" $roles | toJson -}}
{{- end -}}

{{/* The roles in the pods of one: of {root, role}. */}}
{{- define "outrider.together" -}}
{{- $roles := list .role -}}
{{- if and (eq .role "verifier") (eq (include "outrider.isSidecar" .root) "true") -}}
{{- $roles = append $roles "coordinator" -}}
{{- end -}}
{{- dict "roles" $roles | toJson -}}
{{- end -}}

{{/* Labels that never change, by which Services and Deployments find the pods of .component. */}}
{{- define "outrider.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* The labels of an object: of {root} and, if it is about one role, its component. */}}
{{- define "outrider.labels" -}}
{{- if .component -}}
{{ include "outrider.selector" . }}
{{- else -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: outrider
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
The metadata of an object: of {root, name} and, if it has them, component, labels and annotations of its
own.
*/}}
{{- define "outrider.metadata" -}}
name: {{ .name }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "outrider.labels" . | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (default dict .annotations) .root.Values.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The image of a role: of {root, values}. */}}
{{- define "outrider.image" -}}
{{- $own := .values.image -}}
{{- $all := .root.Values.image -}}
{{- $repository := default $all.repository $own.repository -}}
{{- /* A tag given for the role is not overruled by a digest given for all. */ -}}
{{- $digest := default (ternary "" $all.digest (ne $own.tag "")) $own.digest -}}
{{- if $digest -}}
{{ $repository }}@{{ $digest }}
{{- else -}}
{{ $repository }}:{{ coalesce $own.tag $all.tag .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "outrider.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "outrider.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The port's name of a container's metrics and probes: of {role, component}. */}}
{{- define "outrider.adminPortName" -}}
{{- ternary "admin" "coord-admin" (eq .role .component) -}}
{{- end -}}

{{/* The Secret with a role's certificate, empty without TLS: of {root, role, values}. */}}
{{- define "outrider.tlsSecret" -}}
{{- $tls := .root.Values.tls -}}
{{- if ne $tls.mode "off" -}}
{{- if .values.tlsSecret -}}
{{- .values.tlsSecret -}}
{{- else if $tls.certManager.enabled -}}
{{- printf "%s-%s-tls" (include "outrider.fullname" .root) .role -}}
{{- else -}}
{{- $tls.existingSecret -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The ports of the Service for clients. */}}
{{- define "outrider.clientPort" -}}
{{- default .Values.coordinator.port .Values.service.port | int -}}
{{- end -}}

{{- define "outrider.clientHttpPort" -}}
{{- default .Values.coordinator.httpPort .Values.service.httpPort | int -}}
{{- end -}}

{{/* Where clients find the coordinator. */}}
{{- define "outrider.clientUrl" -}}
{{- $scheme := ternary "http" "https" (eq .Values.tls.mode "off") -}}
{{- printf "%s://%s:%s" $scheme (include "outrider.fullname" .) (include "outrider.clientPort" .) -}}
{{- end -}}

{{- define "outrider.clientHttpUrl" -}}
{{- $scheme := ternary "http" "https" (eq .Values.tls.mode "off") -}}
{{- printf "%s://%s:%s" $scheme (include "outrider.fullname" .) (include "outrider.clientHttpPort" .) -}}
{{- end -}}

{{/* The port of a URL. */}}
{{- define "outrider.urlPort" -}}
{{- $url := urlParse . -}}
{{- regexFind "[0-9]+$" (regexFind ":[0-9]+$" $url.host) | default (ternary "443" "80" (eq $url.scheme "https")) -}}
{{- end -}}
