{{/*
The command of the server. Where a second server could open the SQLite file of this one, it first waits for a lock on the volume:
a Deployment replaces a pod that is being deleted while its server still runs.
*/}}
{{- define "mlflow.serverCommand" -}}
{{- $sqlite := include "mlflow.mayBeFile" (dict "root" . "fields" (list "backendStoreUri" "registryStoreUri")) -}}
{{- if and $sqlite .Values.storage.enabled (eq (int64 .Values.replicaCount) 1) -}}
{{- toJson (list "python3.12" "-c" (.Files.Get "files/serve.py") "/mlflow/.mlflow-server.lock" "mlflow") -}}
{{- else -}}
["mlflow"]
{{- end -}}
{{- end }}

{{/* The arguments of the server. */}}
{{- define "mlflow.serverArgs" -}}
{{- $args := list "server" -}}
{{- with .Values.mlflow -}}
{{- if .serveArtifacts -}}
{{- $args = concat $args (list "--serve-artifacts" (printf "--artifacts-destination=%s" (.artifactsDestination | default "file:///mlflow/artifacts"))) -}}
{{- else -}}
{{- $args = append $args "--no-serve-artifacts" -}}
{{- end -}}
{{- if .defaultArtifactRoot }}{{ $args = append $args (printf "--default-artifact-root=%s" .defaultArtifactRoot) }}{{ end -}}
{{- $args = concat $args (list "--app-name=kubernetes-auth" "--enable-workspaces" (printf "--workspace-store-uri=%s" .workspaceStoreUri)) -}}
{{- $args = concat $args (list "--host=0.0.0.0" (printf "--port=%d" (int64 .port)) (printf "--workers=%d" (int64 .workers))) -}}
{{- $args = append $args "--uvicorn-opts=--ssl-keyfile=/etc/tls/private/tls.key --ssl-certfile=/etc/tls/private/tls.crt --proxy-headers" -}}
{{- $args = concat $args (list "--allowed-hosts" (join "," (include "mlflow.allowedHosts" $ | fromJsonArray))) -}}
{{- if .staticPrefix }}{{ $args = append $args (printf "--static-prefix=%s" .staticPrefix) }}{{ end -}}
{{- end -}}
{{- if .Values.metrics.enabled }}{{ $args = append $args "--expose-prometheus=/prometheus" }}{{ end -}}
{{- toJson $args -}}
{{- end }}

{{/* The names under which the server answers: any, or its own, localhost and those of the user. */}}
{{- define "mlflow.allowedHosts" -}}
{{- $wanted := .Values.mlflow.allowedHosts | default (list "*") -}}
{{- if has "*" $wanted -}}
["*"]
{{- else -}}
{{- $port := int64 .Values.service.port -}}
{{- $hosts := list -}}
{{- $name := include "mlflow.name" . -}}
{{- $namespace := include "mlflow.namespace" . -}}
{{- range list $name (printf "%s.%s" $name $namespace) (include "mlflow.host" .) (printf "%s.cluster.local" (include "mlflow.host" .)) "localhost" -}}
{{- $hosts = concat $hosts (list . (printf "%s:%d" . $port)) -}}
{{- end -}}
{{- toJson (concat $hosts $wanted | uniq) -}}
{{- end -}}
{{- end }}

{{/*
A probe of an unauthenticated path, without its times: root, path, attempts (3). The kubelet calls by the address of the pod, so where names
are limited it claims one that is allowed.
*/}}
{{- define "mlflow.probe" -}}
{{- $get := dict "path" (printf "%s%s" .root.Values.mlflow.staticPrefix .path) "port" "https" "scheme" "HTTPS" -}}
{{- if not (has "*" (include "mlflow.allowedHosts" .root | fromJsonArray)) -}}
{{- $_ := set $get "httpHeaders" (list (dict "name" "Host" "value" (include "mlflow.name" .root))) -}}
{{- end -}}
httpGet: {{ include "mlflow.json" $get }}
timeoutSeconds: 1
successThreshold: 1
failureThreshold: {{ include "mlflow.json" (.attempts | default 3) }}
{{- end }}
