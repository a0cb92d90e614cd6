{{/*
The init container that downloads a role's model: of {root, role, values}. A download that was interrupted goes
on where it stopped, and a model that is there is only looked at.
*/}}
{{- define "outrider.download" -}}
{{- $download := .values.download -}}
name: download-{{ .role }}
image: {{ include "outrider.image" . | quote }}
imagePullPolicy: {{ default .root.Values.image.pullPolicy .values.image.pullPolicy }}
args: [models, pull, {{ .values.model | quote }}]
env:
  - name: HF_HUB_CACHE
    value: {{ .values.cache.mountPath }}
  {{- with $download.endpoint }}
  - name: HF_ENDPOINT
    value: {{ . | quote }}
  {{- end }}
  {{- if $download.tokenSecret.name }}
  - name: HF_TOKEN_PATH
    value: /run/outrider/hub/token
  {{- end }}
resources:
  {{- toYaml $download.resources | nindent 2 }}
securityContext:
  {{- toYaml .values.securityContext | nindent 2 }}
volumeMounts:
  - name: cache-{{ .role }}
    mountPath: {{ .values.cache.mountPath }}
  {{- if $download.tokenSecret.name }}
  - name: hub-token-{{ .role }}
    mountPath: /run/outrider/hub
    readOnly: true
  {{- end }}
{{- end -}}
