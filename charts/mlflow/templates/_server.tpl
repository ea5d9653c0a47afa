{{/*
Prints the command of the server. If a second server could open the same SQLite file, the command first waits for a lock on the
volume, because a Deployment starts a new pod while the server of a terminating pod still runs.
*/}}
{{- define "mlflow.serverCommand" -}}
{{- $sqlite := include "mlflow.mayBeFile" (dict "root" . "fields" (list "backendStoreUri" "registryStoreUri")) -}}
{{- if and $sqlite .Values.storage.enabled (eq (int64 .Values.replicaCount) 1) -}}
{{- toJson (list "python3.12" "-c" (.Files.Get "files/serve.py") "/mlflow/.mlflow-server.lock" "mlflow") -}}
{{- else -}}
["mlflow"]
{{- end -}}
{{- end }}

{{/* Prints the arguments of a server. Arguments: root, server. */}}
{{- define "mlflow.serverArgs" -}}
{{- $args := list "server" -}}
{{- $split := .root.Values.artifactsServer.enabled -}}
{{- with .root.Values.mlflow -}}
{{- if and $split $.server.tracking -}}
{{- $args = append $args "--no-serve-artifacts" -}}
{{- else if or $split .serveArtifacts -}}
{{- $args = concat $args (list "--serve-artifacts" (printf "--artifacts-destination=%s" (.artifactsDestination | default "file:///mlflow/artifacts"))) -}}
{{- else -}}
{{- $args = append $args "--no-serve-artifacts" -}}
{{- end -}}
{{- $location := .defaultArtifactRoot -}}
{{- if $split }}{{ $location = include "mlflow.artifactsRoot" $.root }}{{ end -}}
{{- if $location }}{{ $args = append $args (printf "--default-artifact-root=%s" $location) }}{{ end -}}
{{- $args = concat $args (list "--app-name=kubernetes-auth" "--enable-workspaces" (printf "--workspace-store-uri=%s" .workspaceStoreUri)) -}}
{{- $args = concat $args (list (printf "--host=%s" .host) (printf "--port=%d" (int64 .port)) (printf "--workers=%d" (int64 $.server.workers))) -}}
{{- $args = append $args "--uvicorn-opts=--ssl-keyfile=/etc/tls/private/tls.key --ssl-certfile=/etc/tls/private/tls.crt --proxy-headers" -}}
{{- $args = concat $args (list "--allowed-hosts" (join "," (include "mlflow.allowedHosts" $ | fromJsonArray))) -}}
{{- with $.server.prefix }}{{ $args = append $args (printf "--static-prefix=%s" .) }}{{ end -}}
{{- end -}}
{{- if and .server.tracking .root.Values.metrics.enabled }}{{ $args = append $args "--expose-prometheus=/prometheus" }}{{ end -}}
{{- toJson $args -}}
{{- end }}

{{/* Returns the allowed host names of a server: all, or its own names, localhost and those of the user. Arguments: root, server. */}}
{{- define "mlflow.allowedHosts" -}}
{{- $wanted := .root.Values.mlflow.allowedHosts | default (list "*") -}}
{{- if has "*" $wanted -}}
["*"]
{{- else -}}
{{- $port := int64 .root.Values.service.port -}}
{{- $hosts := list -}}
{{- $local := printf "%s.%s" .server.name (include "mlflow.namespace" .root) -}}
{{- range list .server.name $local (printf "%s.svc" $local) (printf "%s.svc.cluster.local" $local) "localhost" -}}
{{- $hosts = concat $hosts (list . (printf "%s:%d" . $port)) -}}
{{- end -}}
{{- toJson (concat $hosts $wanted | uniq) -}}
{{- end -}}
{{- end }}

{{/*
Prints a probe of an unauthenticated path, without its periods. Arguments: root, server, path, attempts (default 3). The kubelet sends
probes to the address of the pod, so if host names are limited, the probe sets an allowed Host header.
*/}}
{{- define "mlflow.probe" -}}
{{- $get := dict "path" (printf "%s%s" .server.prefix .path) "port" "https" "scheme" "HTTPS" -}}
{{- if not (has "*" (include "mlflow.allowedHosts" . | fromJsonArray)) -}}
{{- $_ := set $get "httpHeaders" (list (dict "name" "Host" "value" .server.name)) -}}
{{- end -}}
httpGet: {{ include "mlflow.json" $get }}
timeoutSeconds: 1
successThreshold: 1
failureThreshold: {{ include "mlflow.json" (.attempts | default 3) }}
{{- end }}
