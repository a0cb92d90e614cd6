{{/* The volumes of a role: of {root, role, values}. */}}
{{- define "outrider.volumes" -}}
{{- $fullname := include "outrider.fullname" .root -}}
{{- $cache := .values.cache -}}
- name: config-{{ .role }}
  configMap:
    name: {{ $fullname }}-{{ .role }}
{{- if eq $cache.type "emptyDir" }}
- name: cache-{{ .role }}
  emptyDir:
    sizeLimit: {{ $cache.size }}
{{- else if ne $cache.type "none" }}
- name: cache-{{ .role }}
  persistentVolumeClaim:
    claimName: {{ ternary $cache.existingClaim (printf "%s-%s-cache" $fullname .role) (eq $cache.type "existingClaim") }}
{{- end }}
{{- if and .values.download.enabled .values.download.tokenSecret.name }}
- name: hub-token-{{ .role }}
  secret:
    secretName: {{ .values.download.tokenSecret.name }}
    defaultMode: 0440
    items:
      - key: {{ .values.download.tokenSecret.key }}
        path: token
{{- end }}
{{- with .values.volumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The volumes of a pod's Secrets, each once: of {root, roles}. */}}
{{- define "outrider.secretVolumes" -}}
{{- $root := .root -}}
{{- $seen := dict -}}
{{- range $role := .roles -}}
{{- $scope := dict "root" $root "role" $role "values" (index $root.Values $role) -}}
{{- range (include "outrider.secrets" $scope | fromJson).secrets -}}
{{- if not (hasKey $seen .volume) }}
{{- $_ := set $seen .volume true }}
- name: {{ .volume }}
  secret:
    secretName: {{ .secret }}
    # Read by the group, which is the pod's fsGroup.
    defaultMode: 0440
    {{- with .items }}
    items:
      {{- toYaml . | nindent 6 }}
    {{- end }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
