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
{{- range $peer := list "drafter" "verifier" -}}
{{- $port := (index $.Values $peer).port | int -}}
{{- $_ := set $config.coordinator $peer (printf "http://%s-%s:%d" $fullname $peer $port) -}}
{{- end -}}
{{- mergeOverwrite $config (deepCopy .Values.config) | toPrettyJson -}}
{{- end -}}
