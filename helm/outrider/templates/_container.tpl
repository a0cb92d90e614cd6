{{/* The container of a role: of {root, role, component, values}. */}}
{{- define "outrider.container" -}}
{{- $values := .values -}}
{{- $service := printf "outrider.v1.%s" (title .role) -}}
name: {{ .role }}
image: {{ include "outrider.image" . | quote }}
imagePullPolicy: {{ default .root.Values.image.pullPolicy $values.image.pullPolicy }}
args:
  - serve
  - {{ .role }}
  - --config
  - /etc/outrider/outrider.json
  {{- with $values.args }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with include "outrider.env" . | trim }}
env:
  {{- . | nindent 2 }}
{{- end }}
{{- with $values.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  - name: {{ .role }}
    containerPort: {{ $values.port }}
  {{- if $values.httpPort }}
  - name: http
    containerPort: {{ $values.httpPort }}
  {{- end }}
  - name: {{ include "outrider.adminPortName" . }}
    containerPort: {{ $values.adminPort }}
# On the admin port: the service's own may speak TLS, which probes do not. Ready is who has
# loaded and warmed up the model; alive is judged by the process itself, and draining is no
# reason to be killed.
startupProbe:
  grpc:
    port: {{ $values.adminPort }}
    service: {{ $service }}
  failureThreshold: {{ divf $values.startupSeconds (default 10 $values.probes.startup.periodSeconds) | ceil | int }}
  {{- with $values.probes.startup }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
readinessProbe:
  grpc:
    port: {{ $values.adminPort }}
    service: {{ $service }}
  {{- with $values.probes.readiness }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
livenessProbe:
  httpGet:
    path: /livez
    port: {{ include "outrider.adminPortName" . }}
  {{- with $values.probes.liveness }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- if $values.lifecycle }}
lifecycle:
  {{- toYaml $values.lifecycle | nindent 2 }}
{{- else if $values.preStopSeconds }}
lifecycle:
  preStop:
    sleep:
      seconds: {{ $values.preStopSeconds }}
{{- end }}
resources:
  {{- toYaml $values.resources | nindent 2 }}
securityContext:
  {{- toYaml $values.securityContext | nindent 2 }}
volumeMounts:
  - name: config-{{ .role }}
    mountPath: /etc/outrider
    readOnly: true
  {{- if ne $values.cache.type "none" }}
  - name: cache-{{ .role }}
    mountPath: {{ $values.cache.mountPath }}
    readOnly: true
  {{- end }}
  {{- range (include "outrider.secrets" . | fromJson).secrets }}
  - name: {{ .volume }}
    mountPath: /run/outrider/{{ .folder }}
    readOnly: true
  {{- end }}
  {{- with $values.volumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* The environment of a role. */}}
{{- define "outrider.env" -}}
{{- if ne .values.cache.type "none" }}
- name: HF_HUB_CACHE
  value: {{ .values.cache.mountPath }}
# What is not there is an error, not a download.
- name: HF_HUB_OFFLINE
  value: "1"
{{- end }}
{{- if .root.Values.telemetry.endpoint }}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: NODE_NAME
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
- name: OTEL_RESOURCE_ATTRIBUTES
  value: k8s.namespace.name={{ .root.Release.Namespace }},k8s.pod.name=$(POD_NAME),k8s.node.name=$(NODE_NAME)
{{- with .root.Values.telemetry.headersSecret }}
{{- if .name }}
- name: OTEL_EXPORTER_OTLP_HEADERS
  valueFrom: {secretKeyRef: {name: {{ .name }}, key: {{ .key }}}}
{{- end }}
{{- end }}
{{- end }}
{{- with .values.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
The Secrets that a role has mounted, as JSON: {secrets: [{volume, folder, secret, items}]}. Whole folders,
because a file mounted by itself stays as it was when the Secret changes.
*/}}
{{- define "outrider.secrets" -}}
{{- $all := list -}}
{{- $auth := .root.Values.auth -}}
{{- $isLocal := and (eq .role "verifier") (eq (include "outrider.isSidecar" .root) "true") -}}
{{- $tls := include "outrider.tlsSecret" . -}}
{{- if and $tls (not $isLocal) -}}
{{- $all = append $all (dict "volume" (printf "tls-%s" .role) "folder" "tls" "secret" $tls) -}}
{{- end -}}
{{- if and (eq .role "coordinator") $auth.clientTokens.secret -}}
{{- $items := list (dict "key" $auth.clientTokens.key "path" "tokens") -}}
{{- $all = append $all (dict "volume" "client-tokens" "folder" "client-tokens" "secret" $auth.clientTokens.secret "items" $items) -}}
{{- end -}}
{{- if $auth.peerToken.secret -}}
{{- $items := list (dict "key" $auth.peerToken.key "path" "token") -}}
{{- $all = append $all (dict "volume" "peer-token" "folder" "peer-token" "secret" $auth.peerToken.secret "items" $items) -}}
{{- end -}}
{{- dict "secrets" $all | toJson -}}
{{- end -}}
