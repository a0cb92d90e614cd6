{{/*
The configuration as JSON. Not TOML: Helm reads every number as a float, and its toToml writes 8 as
8.0, which is not a valid count.
*/}}
{{- define "outrider.config" -}}
{{- $fullname := include "outrider.fullname" . -}}
{{- $config := dict -}}
{{- range $role := list "coordinator" "drafter" "verifier" -}}
{{- $port := (index $.Values $role).port | int -}}
{{- $_ := set $config $role (dict "listen" (printf "0.0.0.0:%d" $port)) -}}
{{- end -}}
{{- $drafter := printf "http://%s-drafter:%d" $fullname (.Values.drafter.port | int) -}}
{{- $verifier := printf "http://%s-verifier:%d" $fullname (.Values.verifier.port | int) -}}
{{- $model := dict "name" "default" "drafters" (list $drafter) "verifiers" (list $verifier) -}}
{{- $_ := set $config.coordinator "models" (list $model) -}}
{{- mergeOverwrite $config (deepCopy .Values.config) | toPrettyJson -}}
{{- end -}}
