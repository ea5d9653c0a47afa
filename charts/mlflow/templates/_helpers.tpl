{{/*
Manifests print values only with mlflow.json, mlflow.items or mlflow.metadata. JSON is YAML with quoted strings, so no value can
add a field, end a document, or be parsed as a number or null. Helpers that return a structure return JSON, which the caller
decodes with fromJson or fromJsonArray.
*/}}

{{/* Prints a value as JSON, and escapes characters that are valid in JSON but not in YAML. */}}
{{- define "mlflow.json" -}}
{{- $text := toJson . -}}
{{- range regexFindAll "[\\x{7f}-\\x{9f}\\x{feff}\\x{fffe}\\x{ffff}]" $text -1 | uniq -}}
{{- $text = $text | replace . (printf "%+q" . | trimAll "\"") -}}
{{- end -}}
{{- $text -}}
{{- end }}

{{/* Prints a list, one element per line. */}}
{{- define "mlflow.items" -}}
{{- range $i, $item := . -}}
{{- if $i }}{{ "\n" }}{{ end -}}
- {{ include "mlflow.json" $item }}
{{- end -}}
{{- end }}

{{/* Prints the metadata of an object. Arguments: root, name, app (a label value), annotations, role, cluster (true for cluster-scoped objects). */}}
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

{{/* Returns the labels of an object. Arguments: root, app, role (optional). */}}
{{- define "mlflow.labels" -}}
{{- $labels := dict -}}
{{- range $key, $value := .root.Values.commonLabels -}}
{{- $_ := set $labels $key $value -}}
{{- end -}}
{{- $_ := set $labels "app" .app -}}
{{- with .role }}{{ $_ := set $labels "app.kubernetes.io/component" . }}{{ end -}}
{{- toJson $labels -}}
{{- end }}

{{/* Returns the labels of a pod. Arguments: root, app. The NetworkPolicy of the server selects pods by the instance label. */}}
{{- define "mlflow.podLabels" -}}
{{- $labels := include "mlflow.labels" . | fromJson -}}
{{- $_ := set $labels "app.kubernetes.io/instance" (include "mlflow.name" .root) -}}
{{- toJson $labels -}}
{{- end }}

{{/* Returns the labels of the pods of a server: those of the user, and the selector labels of the chart. Arguments: root, server. */}}
{{- define "mlflow.serverLabels" -}}
{{- $ours := include "mlflow.podLabels" (dict "root" .root "app" (include "mlflow.name" .root)) | fromJson -}}
{{- $labels := deepCopy (.root.Values.podLabels | default dict) -}}
{{- range $key, $value := $ours -}}
{{- if and (hasKey $labels $key) (ne (get $labels $key | toString) $value) -}}
{{- fail (printf "podLabels must not set %s: the Deployment, Service and NetworkPolicy select the pods by it; remove this key or choose another" $key) -}}
{{- end -}}
{{- $_ := set $labels $key $value -}}
{{- end -}}
{{- $_ := set $labels "app" .server.name -}}
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

{{/* Prints the URL of the server inside the cluster. */}}
{{- define "mlflow.address" -}}
{{ include "mlflow.addressOf" (dict "root" . "server" (include "mlflow.tracking" . | fromJson)) }}
{{- end }}

{{/* Prints the URL of one server inside the cluster. Arguments: root, server. */}}
{{- define "mlflow.addressOf" -}}
https://{{ .server.name }}.{{ include "mlflow.namespace" .root }}.svc:{{ int64 .root.Values.service.port }}{{ .server.prefix }}
{{- end }}

{{/* Returns the tracking server, which also serves artifacts unless a separate server does. */}}
{{- define "mlflow.tracking" -}}
{{- $server := dict "name" (include "mlflow.name" .) "container" "mlflow" "prefix" .Values.mlflow.staticPrefix "secret" .Values.tls.secretName "tracking" true -}}
{{- $server = merge $server (dict "replicas" (int64 .Values.replicaCount) "workers" (int64 .Values.mlflow.workers) "used" (include "mlflow.serverUsesVolume" .)) -}}
{{- toJson (merge $server (dict "resources" .Values.resources "claims" .Values.resourceClaims "annotations" .Values.service.annotations)) -}}
{{- end }}

{{/* Returns the server for artifacts. It does not inherit the resource claims of the tracking server. */}}
{{- define "mlflow.artifacts" -}}
{{- $name := printf "mlflow-artifacts%s" .Values.resourceSuffix -}}
{{- with .Values.artifactsServer -}}
{{- $server := dict "name" $name "container" "mlflow-artifacts" "prefix" (printf "/%s" $name) "secret" .tls.secretName "tracking" false -}}
{{- $used := and $.Values.storage.enabled (include "mlflow.isFile" $.Values.mlflow.artifactsDestination) -}}
{{- $server = merge $server (dict "replicas" (int64 .replicas) "workers" (int64 .workers) "used" (ternary "" "used" (empty $used))) -}}
{{- $resources := .resources -}}
{{- if not (kindIs "map" $resources) }}{{ $resources = $.Values.resources }}{{ end -}}
{{- if and (not (kindIs "map" .resources)) (kindIs "map" $resources) }}{{ $resources = omit $resources "claims" }}{{ end -}}
{{- toJson (merge $server (dict "resources" $resources "claims" .resourceClaims "annotations" .service.annotations)) -}}
{{- end -}}
{{- end }}

{{/* Returns the list of enabled servers. */}}
{{- define "mlflow.servers" -}}
{{- $servers := list (include "mlflow.tracking" . | fromJson) -}}
{{- if .Values.artifactsServer.enabled }}{{ $servers = append $servers (include "mlflow.artifacts" . | fromJson) }}{{ end -}}
{{- toJson $servers -}}
{{- end }}

{{/* Prints the default artifact root of new experiments if a separate server serves artifacts. */}}
{{- define "mlflow.artifactsRoot" -}}
{{ trimSuffix "/" .Values.artifactsServer.url }}/mlflow-artifacts{{ .Values.resourceSuffix }}/api/2.0/mlflow-artifacts/artifacts
{{- end }}

{{/* Prints the image reference: the name if it is a full reference, otherwise the name with the digest or tag. */}}
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

{{/* Prints the subject of a RoleBinding or ClusterRoleBinding. Arguments: root, name. */}}
{{- define "mlflow.subject" -}}
{{- toJson (dict "kind" "ServiceAccount" "name" .name "namespace" (include "mlflow.namespace" .root)) -}}
{{- end }}
