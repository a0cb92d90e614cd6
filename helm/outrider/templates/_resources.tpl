{{/*
Refuses what the API server refuses of a container's resources only when pods are made: a request above the limit, and what
is no quantity. Of {name, resources}; the name is where the values say them.
*/}}
{{- define "outrider.checkResources" -}}
{{- $resources := .resources | default dict -}}
{{- $limits := $resources.limits | default dict -}}
{{- range $list := list "limits" "requests" -}}
{{- range $resource, $quantity := index $resources $list -}}
{{- if not (include "outrider.quantity" $quantity) -}}
{{- fail (printf "%s.%s.%s is %q, which is no quantity, as 500m, 2 and 4Gi are" $.name $list $resource (toString $quantity)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $resource, $request := $resources.requests -}}
{{- $limit := index $limits $resource -}}
{{- if and (hasKey $limits $resource) (gt (include "outrider.quantity" $request | float64) (include "outrider.quantity" $limit | float64)) -}}
{{- fail (printf "%s: %s of %v is requested, above its limit of %v: raise the limit or lower the request" $.name $resource $request $limit) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
A quantity of Kubernetes' as a plain number of units, empty for what is none: 500m is 0.5, 1Ki is 1024, 1e3 and 1k are 1000.
mulf multiplies decimals, so that 1.1 and 1100m are the same number.
*/}}
{{- define "outrider.quantity" -}}
{{- $decimal := dict "n" 1e-9 "u" 1e-6 "m" 1e-3 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 -}}
{{- $binary := dict "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 "Ei" 1152921504606846976 -}}
{{- $text := toString . -}}
{{- if regexMatch "^([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+|[numkMGTPE]|[KMGTPE]i)?$" $text -}}
{{- $suffix := regexFind "([numkMGTP]|[KMGTPE]i|E)$" $text -}}
{{- mulf (trimSuffix $suffix $text | float64) (index (merge $decimal $binary) $suffix | default 1) -}}
{{- end -}}
{{- end -}}
