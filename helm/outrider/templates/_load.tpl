{{/*
The gauges by which a role scales, as JSON: {gauges: [{metric, target}]}, of {root, role, values}. They are those of
docs/reference/telemetry.md.
*/}}
{{- define "outrider.load" -}}
{{- $running := ternary "outrider_requests_running" "outrider_engine_running" (eq .role "coordinator") -}}
{{- $gauges := list -}}
{{- with .values.autoscaling.queue -}}
{{- $gauges = append $gauges (dict "metric" "outrider_engine_queue" "target" .) -}}
{{- end -}}
{{- with .values.autoscaling.running -}}
{{- $gauges = append $gauges (dict "metric" $running "target" .) -}}
{{- end -}}
{{- dict "gauges" $gauges | toJson -}}
{{- end -}}
