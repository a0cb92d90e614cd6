{{/*
The configuration of one role as JSON: of {root, role, values}. Not TOML: Helm reads every number as a
float, and its toToml writes 8 as 8.0, which is not a valid count.

It holds the common sections and the role's own, so that a change for one role leaves the pods of the others
alone: loading a large model anew takes minutes.
*/}}
{{- define "outrider.config" -}}
{{- $values := .root.Values -}}
{{- $section := include "outrider.roleConfig" . | fromJson -}}
{{- $config := dict .role $section -}}
{{- $_ := set $config "admin" (dict "listen" (printf "0.0.0.0:%d" (int .values.adminPort)) "insecure" true) -}}
{{- $isLocal := and (eq .role "verifier") (eq (include "outrider.isSidecar" .root) "true") -}}
{{- if and (eq $values.tls.mode "off") (not $isLocal) -}}
{{- $_ := set $config "insecure" true -}}
{{- else if not $isLocal -}}
{{- $_ := set $config "tls" (include "outrider.tlsConfig" . | fromJson) -}}
{{- end -}}
{{- $auth := include "outrider.authConfig" . | fromJson -}}
{{- if $auth -}}{{- $_ := set $config "auth" $auth -}}{{- end -}}
{{- with $values.telemetry.endpoint -}}
{{- $_ := set $config "telemetry" (dict "endpoint" . "protocol" $values.telemetry.protocol) -}}
{{- end -}}
{{- $others := without (list "coordinator" "drafter" "verifier") .role -}}
{{- $given := deepCopy $values.config -}}
{{- range $others -}}{{- $given = omit $given . -}}{{- end -}}
{{- mergeOverwrite $config $given | toPrettyJson -}}
{{- end -}}

{{/* The role's own section. */}}
{{- define "outrider.roleConfig" -}}
{{- $fullname := include "outrider.fullname" .root -}}
{{- $values := .root.Values -}}
{{- $scheme := ternary "http" "https" (eq $values.tls.mode "off") -}}
{{- $isSidecar := eq (include "outrider.isSidecar" .root) "true" -}}
{{- $address := ternary "127.0.0.1" "0.0.0.0" (and $isSidecar (eq .role "verifier")) -}}
{{- $section := dict "listen" (printf "%s:%d" $address (int .values.port)) -}}
{{- if .values.model -}}{{- $_ := set $section "model" (dict "path" .values.model) -}}{{- end -}}
{{- if eq .role "coordinator" -}}
{{- $drafters := list -}}
{{- if $values.drafter.enabled -}}
{{- $drafters = list (printf "%s://%s-drafter:%d" $scheme $fullname (int $values.drafter.port)) -}}
{{- end -}}
{{- $verifier := printf "%s://%s-verifier:%d" $scheme $fullname (int $values.verifier.port) -}}
{{- if $isSidecar -}}{{- $verifier = printf "http://127.0.0.1:%d" (int $values.verifier.port) -}}{{- end -}}
{{- $model := dict "name" $values.modelName "drafters" $drafters "verifiers" (list $verifier) -}}
{{- $_ := set $section "models" (list $model) -}}
{{- $http := ternary (printf "0.0.0.0:%d" (int .values.httpPort)) "off" (gt (int .values.httpPort) 0) -}}
{{- $_ := set $section "http" (dict "listen" $http) -}}
{{- end -}}
{{- $section | toJson -}}
{{- end -}}

{{- define "outrider.tlsConfig" -}}
{{- $folder := "/run/outrider/tls" -}}
{{- $tls := dict "mode" .root.Values.tls.mode -}}
{{- $_ := set $tls "cert_file" (printf "%s/tls.crt" $folder) -}}
{{- $_ := set $tls "key_file" (printf "%s/tls.key" $folder) -}}
{{- /* Who connects to nobody and asks nobody for a certificate need not know a CA. */ -}}
{{- if or (eq .role "coordinator") (eq .root.Values.tls.mode "mutual") -}}
{{- $_ := set $tls "ca_file" (printf "%s/ca.crt" $folder) -}}
{{- end -}}
{{- $tls | toJson -}}
{{- end -}}

{{- define "outrider.authConfig" -}}
{{- $auth := dict -}}
{{- if and (eq .role "coordinator") .root.Values.auth.clientTokens.secret -}}
{{- $_ := set $auth "client_tokens_file" "/run/outrider/client-tokens/tokens" -}}
{{- end -}}
{{- if .root.Values.auth.peerToken.secret -}}
{{- $_ := set $auth "peer_token_file" "/run/outrider/peer-token/token" -}}
{{- end -}}
{{- $auth | toJson -}}
{{- end -}}
