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

{{/* metadata of an object: root, name, app (value of the label), annotations, role, cluster (true: it has no namespace). */}}
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

{{/* Labels of an object: root, app, role (none when it is empty). */}}
{{- define "mlflow.labels" -}}
{{- $labels := dict -}}
{{- range $key, $value := .root.Values.commonLabels -}}
{{- $_ := set $labels $key $value -}}
{{- end -}}
{{- $_ := set $labels "app" .app -}}
{{- with .role }}{{ $_ := set $labels "app.kubernetes.io/component" . }}{{ end -}}
{{- toJson $labels -}}
{{- end }}

{{/* Labels of a pod: root, app. The label of the instance puts it under the network policy of the server. */}}
{{- define "mlflow.podLabels" -}}
{{- $labels := include "mlflow.labels" . | fromJson -}}
{{- $_ := set $labels "app.kubernetes.io/instance" (include "mlflow.name" .root) -}}
{{- toJson $labels -}}
{{- end }}

{{/* Labels of the pods of a server: those of the user and ours, by which other objects select: root, server. */}}
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

{{/* Where workloads of the cluster reach the server. */}}
{{- define "mlflow.address" -}}
{{ include "mlflow.addressOf" (dict "root" . "server" (include "mlflow.tracking" . | fromJson)) }}
{{- end }}

{{/* The same of one of the servers: root, server. */}}
{{- define "mlflow.addressOf" -}}
https://{{ .server.name }}.{{ include "mlflow.namespace" .root }}.svc:{{ int64 .root.Values.service.port }}{{ .server.prefix }}
{{- end }}

{{/* The server for everything, or everything but artifacts. */}}
{{- define "mlflow.tracking" -}}
{{- $server := dict "name" (include "mlflow.name" .) "container" "mlflow" "prefix" .Values.mlflow.staticPrefix "secret" .Values.tls.secretName "tracking" true -}}
{{- $server = merge $server (dict "replicas" (int64 .Values.replicaCount) "workers" (int64 .Values.mlflow.workers) "used" (include "mlflow.serverUsesVolume" .)) -}}
{{- toJson (merge $server (dict "resources" .Values.resources "claims" .Values.resourceClaims "annotations" .Values.service.annotations)) -}}
{{- end }}

{{/* The server for artifacts. Devices that the tracking server claims are not its own. */}}
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

{{/* The servers that the values ask for, as a list. */}}
{{- define "mlflow.servers" -}}
{{- $servers := list (include "mlflow.tracking" . | fromJson) -}}
{{- if .Values.artifactsServer.enabled }}{{ $servers = append $servers (include "mlflow.artifacts" . | fromJson) }}{{ end -}}
{{- toJson $servers -}}
{{- end }}

{{/* Where new experiments keep their artifacts if there is a separate server for them. */}}
{{- define "mlflow.artifactsRoot" -}}
{{ trimSuffix "/" .Values.artifactsServer.url }}/mlflow-artifacts{{ .Values.resourceSuffix }}/api/2.0/mlflow-artifacts/artifacts
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
