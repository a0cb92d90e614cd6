{{/* What the schema cannot say: values that do not fit each other. */}}
{{- define "outrider.checks" -}}
{{- $version := .Capabilities.KubeVersion.Version -}}
{{- /* 1.20 is what a helm built by `go install` believes, where it only renders. */ -}}
{{- if and (semverCompare "<1.30.0-0" $version) (not (hasPrefix "v1.20.0" $version)) -}}
{{- fail (printf "Kubernetes %s: 1.30 or later is needed, for the sleep before a container stops" $version) -}}
{{- end -}}
{{- if and (not .Values.verifier.enabled) .Values.coordinator.enabled (not (dig "coordinator" "models" false .Values.config)) -}}
{{- fail "verifier.enabled is false: config.coordinator.models must say where verifiers are" -}}
{{- end -}}
{{- include "outrider.checkSidecar" . -}}
{{- include "outrider.checkTls" . -}}
{{- range $role := (include "outrider.roles" . | fromJson).roles -}}
{{- $scope := dict "root" $ "role" $role "values" (index $.Values $role) -}}
{{- include "outrider.checkPorts" $scope -}}
{{- include "outrider.checkGrace" $scope -}}
{{- include "outrider.checkModel" $scope -}}
{{- include "outrider.checkAutoscaling" $scope -}}
{{- include "outrider.checkResources" (dict "name" (printf "%s.resources" $role) "resources" $scope.values.resources) -}}
{{- include "outrider.checkResources" (dict "name" (printf "%s.download.resources" $role) "resources" $scope.values.download.resources) -}}
{{- end -}}
{{- include "outrider.checkResources" (dict "name" "tests.resources" "resources" .Values.tests.resources) -}}
{{- include "outrider.checkHttp" . -}}
{{- include "outrider.checkOperators" . -}}
{{- end -}}

{{- define "outrider.checkSidecar" -}}
{{- if eq (include "outrider.isSidecar" .) "true" -}}
{{- if not .Values.verifier.enabled -}}
{{- fail "coordinator.placement is sidecar: that is beside a verifier, and verifier.enabled is false" -}}
{{- end -}}
{{- if ne .Values.coordinator.autoscaling.type "none" -}}
{{- fail "coordinator.autoscaling: a sidecar scales with the verifier; set verifier.autoscaling" -}}
{{- end -}}
{{- $ports := list -}}
{{- range list .Values.coordinator .Values.verifier -}}
{{- range list .port .adminPort .httpPort -}}
{{- if . -}}{{- $ports = append $ports (int .) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if lt (uniq $ports | len) (len $ports) -}}
{{- fail "coordinator.placement is sidecar: port, httpPort and adminPort of coordinator and verifier must be different numbers" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "outrider.checkTls" -}}
{{- $tls := .Values.tls -}}
{{- if and (eq $tls.mode "off") (eq (toString .Values.config.insecure) "false") -}}
{{- fail "config.insecure is false and tls.mode is off: nothing would start; set tls.mode to server or mutual" -}}
{{- end -}}
{{- if $tls.certManager.enabled -}}
{{- if eq $tls.mode "off" -}}
{{- fail "tls.certManager is enabled and tls.mode is off: set tls.mode to server or mutual" -}}
{{- end -}}
{{- if not $tls.certManager.issuerRef.name -}}
{{- fail "tls.certManager.issuerRef.name is empty: name the Issuer or ClusterIssuer" -}}
{{- end -}}
{{- end -}}
{{- if ne $tls.mode "off" -}}
{{- range $role := (include "outrider.roles" . | fromJson).roles -}}
{{- if not (include "outrider.tlsSecret" (dict "root" $ "role" $role "values" (index $.Values $role))) -}}
{{- fail (printf "tls.mode is %s and the %s has no certificate: set tls.existingSecret, %s.tlsSecret or tls.certManager.enabled" $tls.mode $role $role) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The OpenAI API, and what leads to it. */}}
{{- define "outrider.checkHttp" -}}
{{- $isServed := and .Values.coordinator.enabled (gt (int .Values.coordinator.httpPort) 0) -}}
{{- if dig "coordinator" "http" "listen" "" .Values.config -}}
{{- fail "config.coordinator.http.listen: Services do not follow it; set coordinator.httpPort" -}}
{{- end -}}
{{- if and .Values.service.httpPort (not $isServed) -}}
{{- fail "service.httpPort is set and leads nowhere: coordinator.httpPort is 0, or coordinator.enabled is false" -}}
{{- end -}}
{{- if and $isServed (eq (include "outrider.clientPort" .) (include "outrider.clientHttpPort" .)) -}}
{{- fail (printf "the Service for clients would have port %s twice: set service.port and service.httpPort" (include "outrider.clientPort" .)) -}}
{{- end -}}
{{- range $key := list "ingress" "httpRoute" -}}
{{- if and (index $.Values $key).enabled (not $isServed) -}}
{{- fail (printf "%s is enabled and leads nowhere: coordinator.httpPort is 0, or coordinator.enabled is false" $key) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) -}}
{{- fail "httpRoute.parentRefs is empty: name the gateway" -}}
{{- end -}}
{{- end -}}

{{/* The rest are about one role: of {root, role, values}. */}}
{{- define "outrider.checkPorts" -}}
{{- if eq (int .values.port) (int .values.adminPort) -}}
{{- fail (printf "%s.port and %s.adminPort are both %d: a process needs two" .role .role (int .values.port)) -}}
{{- end -}}
{{- range $key := list "port" "adminPort" -}}
{{- if eq (int (index $.values $key)) (int $.values.httpPort) -}}
{{- fail (printf "%s.%s and %s.httpPort are both %d: the OpenAI API needs a port of its own" $.role $key $.role (int $.values.httpPort)) -}}
{{- end -}}
{{- end -}}
{{- if dig .role "listen" "" .root.Values.config -}}
{{- fail (printf "config.%s.listen: Services and probes do not follow it; set %s.port" .role .role) -}}
{{- end -}}
{{- if dig "admin" "listen" "" .root.Values.config -}}
{{- fail (printf "config.admin.listen: probes do not follow it; set %s.adminPort" .role) -}}
{{- end -}}
{{- end -}}

{{- define "outrider.checkGrace" -}}
{{- $server := dig .role "server" dict .root.Values.config -}}
{{- $drain := default 10000 $server.drain_grace_ms | int -}}
{{- $stop := ternary 0 (int .values.preStopSeconds) (gt (len .values.lifecycle) 0) -}}
{{- /* A process exits within its grace and a second. */ -}}
{{- $needed := add $stop (divf $drain 1000 | ceil | int) 1 -}}
{{- if lt (int .values.terminationGracePeriodSeconds) (int $needed) -}}
{{- fail (printf "%s.terminationGracePeriodSeconds is %d: preStopSeconds, the drain grace and a second need %d" .role (int .values.terminationGracePeriodSeconds) $needed) -}}
{{- end -}}
{{- end -}}

{{- define "outrider.checkModel" -}}
{{- $model := .values.model -}}
{{- $cache := .values.cache -}}
{{- $isHub := regexMatch "^[A-Za-z0-9][A-Za-z0-9._-]*/[^/]" $model -}}
{{- if and (eq $cache.type "existingClaim") (not $cache.existingClaim) -}}
{{- fail (printf "%s.cache.existingClaim is empty: name the PersistentVolumeClaim" .role) -}}
{{- end -}}
{{- if and (or $isHub .values.download.enabled) (eq $cache.type "none") -}}
{{- fail (printf "%s.model is %q and %s.cache.type is none: choose where the model is kept" .role $model .role) -}}
{{- end -}}
{{- if .values.download.enabled -}}
{{- if not (regexMatch "^[A-Za-z0-9][A-Za-z0-9._-]*/[^/@]+@[^@]+$" $model) -}}
{{- fail (printf "%s.model is %q: a download needs org/name@REVISION, so that every pod has the same weights" .role $model) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "outrider.checkAutoscaling" -}}
{{- $scaling := .values.autoscaling -}}
{{- if ne $scaling.type "none" -}}
{{- if not (or $scaling.cpuPercent $scaling.queue $scaling.running $scaling.metrics) -}}
{{- fail (printf "%s.autoscaling says by nothing what to scale: set cpuPercent, queue, running or metrics" .role) -}}
{{- end -}}
{{- if gt (int $scaling.minReplicas) (int $scaling.maxReplicas) -}}
{{- fail (printf "%s.autoscaling.minReplicas is %d, more than maxReplicas, %d" .role (int $scaling.minReplicas) (int $scaling.maxReplicas)) -}}
{{- end -}}
{{- if and (eq .role "coordinator") $scaling.queue -}}
{{- fail "coordinator.autoscaling.queue: a coordinator refuses what it cannot begin and has no queue; set running" -}}
{{- end -}}
{{- end -}}
{{- end -}}
