{{/*
The rule of this chart: a manifest prints nothing but through mlflow.json, mlflow.items or mlflow.metadata. JSON is YAML in
which every text is quoted, so no value can add a field, end a document, or be taken for a number or nothing.
Helpers with a structure as their result give JSON, which the caller reads with fromJson or fromJsonArray.
*/}}

{{/* A value as JSON. Characters that JSON leaves alone and YAML does not read are escaped as well. */}}
{{- define "mlflow.json" -}}
{{- $text := toJson . -}}
{{- range regexFindAll "[\\x{7f}-\\x{9f}\\x{feff}\\x{fffe}\\x{ffff}]" $text -1 | uniq -}}
{{- $text = $text | replace . (printf "%+q" . | trimAll "\"") -}}
{{- end -}}
{{- $text -}}
{{- end }}

{{/* The elements of a list, one a line. */}}
{{- define "mlflow.items" -}}
{{- range $i, $item := . -}}
{{- if $i }}{{ "\n" }}{{ end -}}
- {{ include "mlflow.json" $item }}
{{- end -}}
{{- end }}

{{/* metadata of an object: root, name, app (value of the label), annotations, cluster (true: it has no namespace). */}}
{{- define "mlflow.metadata" -}}
{{- $metadata := dict "name" .name "labels" (include "mlflow.labels" . | fromJson) -}}
{{- if not .cluster -}}
{{- $_ := set $metadata "namespace" (include "mlflow.namespace" .root) -}}
{{- end -}}
{{- if .annotations -}}
{{- $_ := set $metadata "annotations" .annotations -}}
{{- end -}}
{{- include "mlflow.json" $metadata -}}
{{- end }}

{{/* Labels of an object: root, app. */}}
{{- define "mlflow.labels" -}}
{{- $labels := dict -}}
{{- range $key, $value := .root.Values.commonLabels -}}
{{- $_ := set $labels $key $value -}}
{{- end -}}
{{- $_ := set $labels "app" .app -}}
{{- toJson $labels -}}
{{- end }}

{{/* Labels of a pod: root, app. The label of the instance puts it under the network policy of the server. */}}
{{- define "mlflow.podLabels" -}}
{{- $labels := include "mlflow.labels" . | fromJson -}}
{{- $_ := set $labels "app.kubernetes.io/instance" (include "mlflow.name" .root) -}}
{{- toJson $labels -}}
{{- end }}

{{/* Labels of the server pods: those of the user and ours, by which other objects select. */}}
{{- define "mlflow.serverLabels" -}}
{{- $ours := include "mlflow.podLabels" (dict "root" . "app" (include "mlflow.name" .)) | fromJson -}}
{{- $labels := deepCopy (.Values.podLabels | default dict) -}}
{{- range $key, $value := $ours -}}
{{- if and (hasKey $labels $key) (ne (get $labels $key | toString) $value) -}}
{{- fail (printf "podLabels must not set %s: the Deployment, Service and NetworkPolicy select the pods by it; remove this key or choose another" $key) -}}
{{- end -}}
{{- $_ := set $labels $key $value -}}
{{- end -}}
{{- toJson $labels -}}
{{- end }}

{{- define "mlflow.name" -}}
mlflow{{ .Values.resourceSuffix }}
{{- end }}

{{- define "mlflow.namespace" -}}
{{ .Values.namespace | default .Release.Namespace }}
{{- end }}

{{- define "mlflow.host" -}}
{{ include "mlflow.name" . }}.{{ include "mlflow.namespace" . }}.svc
{{- end }}

{{/* Where workloads of the cluster reach the server. */}}
{{- define "mlflow.address" -}}
https://{{ include "mlflow.host" . }}:{{ int64 .Values.service.port }}{{ .Values.mlflow.staticPrefix }}
{{- end }}

{{/* The image: the name alone if it is a full reference, otherwise with the digest, or with the tag. */}}
{{- define "mlflow.image" -}}
{{- with .Values.image -}}
{{- $full := regexMatch "(@|:[^/]*$)" .name -}}
{{- if and $full .digest -}}
{{- fail (printf "image.name %q has a tag or digest already: remove it there, or image.digest" .name) -}}
{{- end -}}
{{- .name -}}
{{- if .digest }}@{{ .digest }}{{ else if and .tag (not $full) }}:{{ .tag }}{{ end -}}
{{- end -}}
{{- end }}

{{/* The subject of a binding: root, name. */}}
{{- define "mlflow.subject" -}}
{{- toJson (dict "kind" "ServiceAccount" "name" .name "namespace" (include "mlflow.namespace" .root)) -}}
{{- end }}
