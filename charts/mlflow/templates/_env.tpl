{{/*
Environment variables. Variables of the chart and of the user are merged by name: those of the user override, and the last of
several entries applies. Variables that affect authorization or data are rejected.
*/}}

{{/* Returns the variables that users must not set, each with the reason or an alternative. */}}
{{- define "mlflow.refusals" -}}
MLFLOW_BACKEND_STORE_URI: set mlflow.backendStoreUri or mlflow.backendStoreUriFrom instead
MLFLOW_ENABLE_WORKSPACES: workspaces are always on, because requests are authorized in them
MLFLOW_K8S_AUTH_AUTHORIZATION_MODE: every request is authorized with a SelfSubjectAccessReview
MLFLOW_SERVER_ALLOWED_HOSTS: set mlflow.allowedHosts instead
MLFLOW_SERVER_DISABLE_SECURITY_MIDDLEWARE: the server keeps its checks
MLFLOW_SERVER_ENABLE_JOB_EXECUTION: jobs run in separate pods
MLFLOW_TRACKING_INSECURE_TLS: the certificate of the server is always verified, set caBundle.configMaps or tls.caConfigMap to trust another authority
MLFLOW_WORKSPACE_STORE_URI: set mlflow.workspaceStoreUri instead
{{- end }}

{{/* Merges lists of variables. Arguments: before, user, after. */}}
{{- define "mlflow.mergeEnv" -}}
{{- $last := dict -}}
{{- range $i, $entry := .user -}}
{{- $_ := set $last $entry.name $i -}}
{{- end -}}
{{- $merged := list -}}
{{- range .before -}}
{{- if not (hasKey $last .name) }}{{ $merged = append $merged . }}{{ end -}}
{{- end -}}
{{- range $i, $entry := .user -}}
{{- if eq (get $last $entry.name) $i }}{{ $merged = append $merged $entry }}{{ end -}}
{{- end -}}
{{- range .after -}}
{{- if not (hasKey $last .name) }}{{ $merged = append $merged . }}{{ end -}}
{{- end -}}
{{- toJson $merged -}}
{{- end }}

{{/* Returns the variables of the user, with the defaults of the API server. */}}
{{- define "mlflow.userEnv" -}}
{{- $refusals := include "mlflow.refusals" . | fromYaml -}}
{{- $entries := list -}}
{{- range .Values.env -}}
{{- if hasKey $refusals .name -}}
{{- fail (printf "env: %s is not allowed; %s" .name (get $refusals .name)) -}}
{{- end -}}
{{- $entry := deepCopy . -}}
{{- if and $entry.valueFrom $entry.valueFrom.fieldRef -}}
{{- if not $entry.valueFrom.fieldRef.apiVersion -}}
{{- $_ := set $entry.valueFrom.fieldRef "apiVersion" "v1" -}}
{{- end -}}
{{- end -}}
{{- $entries = append $entries $entry -}}
{{- end -}}
{{- toJson $entries -}}
{{- end }}

{{/* Returns a list with the variable of a store, or an empty list. Arguments: name, field, uri, from. A Secret overrides a URI. */}}
{{- define "mlflow.storeEnv" -}}
{{- if .from -}}
{{- $ref := .from.secretKeyRef | default dict -}}
{{- if not (and $ref.name $ref.key) -}}
{{- fail (printf "mlflow.%sFrom.secretKeyRef must include non-empty 'name' and 'key'" .field) -}}
{{- end -}}
{{- toJson (list (dict "name" .name "valueFrom" (dict "secretKeyRef" $ref))) -}}
{{- else if .uri -}}
{{- toJson (list (dict "name" .name "value" .uri)) -}}
{{- else -}}
[]
{{- end -}}
{{- end }}

{{- define "mlflow.backendEnv" -}}
{{- with .Values.mlflow -}}
{{- $backend := include "mlflow.storeEnv" (dict "name" "MLFLOW_BACKEND_STORE_URI" "field" "backendStoreUri" "uri" .backendStoreUri "from" .backendStoreUriFrom) | fromJsonArray -}}
{{- if not $backend -}}
{{- fail "mlflow.backendStoreUri or mlflow.backendStoreUriFrom must be set" -}}
{{- end -}}
{{- toJson $backend -}}
{{- end -}}
{{- end }}

{{/* Returns the variables of backend, read replica and registry. The registry uses the backend store by default. */}}
{{- define "mlflow.storesEnv" -}}
{{- $backend := include "mlflow.backendEnv" . | fromJsonArray -}}
{{- with .Values.mlflow -}}
{{- $replica := include "mlflow.storeEnv" (dict "name" "MLFLOW_READ_REPLICA_BACKEND_STORE_URI" "field" "readReplicaBackendStoreUri" "uri" .readReplicaBackendStoreUri "from" .readReplicaBackendStoreUriFrom) | fromJsonArray -}}
{{- $registry := include "mlflow.storeEnv" (dict "name" "MLFLOW_REGISTRY_STORE_URI" "field" "registryStoreUri" "uri" .registryStoreUri "from" .registryStoreUriFrom) | fromJsonArray -}}
{{- if not $registry -}}
{{- $entry := deepCopy (first $backend) -}}
{{- $_ := set $entry "name" "MLFLOW_REGISTRY_STORE_URI" -}}
{{- $registry = list $entry -}}
{{- end -}}
{{- toJson (concat $backend $replica $registry) -}}
{{- end -}}
{{- end }}

{{- define "mlflow.selectorEnv" -}}
{{- if .Values.mlflow.workspaceLabelSelector -}}
{{- toJson (list (dict "name" "MLFLOW_K8S_WORKSPACE_LABEL_SELECTOR" "value" .Values.mlflow.workspaceLabelSelector)) -}}
{{- else -}}
[]
{{- end -}}
{{- end }}

{{- define "mlflow.archivalEnv" -}}
{{- if .Values.traceArchival.enabled -}}
{{- toJson (list (dict "name" "MLFLOW_TRACE_ARCHIVAL_CONFIG" "value" "/etc/mlflow/trace-archival.yaml")) -}}
{{- else -}}
[]
{{- end -}}
{{- end }}

{{- define "mlflow.cipherEnv" -}}
{{- if .Values.tls.ciphers -}}
{{- toJson (list (dict "name" "UVICORN_SSL_CIPHERS" "value" .Values.tls.ciphers)) -}}
{{- else -}}
[]
{{- end -}}
{{- end }}

{{/* Returns the allowed CORS origins of a server: the list of the user, or the names of the server, a forwarded port and additional origins. Arguments: root, server. */}}
{{- define "mlflow.corsOrigins" -}}
{{- $host := printf "%s.%s.svc" .server.name (include "mlflow.namespace" .root) -}}
{{- $port := int64 .root.Values.service.port -}}
{{- $origins := list (printf "https://%s:%d" .server.name $port) (printf "https://%s:%d" $host $port) (printf "https://%s.cluster.local:%d" $host $port) "localhost:*" "127.0.0.1:*" -}}
{{- range .root.Values.mlflow.extraAllowedOrigins -}}
{{- if and (trim .) (not (contains "," .)) }}{{ $origins = append $origins (trim .) }}{{ end -}}
{{- end -}}
{{- .root.Values.mlflow.corsAllowedOrigins | default (join "," $origins) -}}
{{- end }}

{{/* Returns the variables of a server. Arguments: root, server. */}}
{{- define "mlflow.serverEnv" -}}
{{- $before := list (dict "name" "MLFLOW_DISABLE_TELEMETRY" "value" "true") (dict "name" "MLFLOW_SERVER_ENABLE_JOB_EXECUTION" "value" "false") -}}
{{- if .server.tracking }}{{ $before = concat $before (include "mlflow.archivalEnv" .root | fromJsonArray) }}{{ end -}}
{{- $before = concat $before (include "mlflow.storesEnv" .root | fromJsonArray) -}}
{{- $before = append $before (dict "name" "MLFLOW_K8S_AUTH_AUTHORIZATION_MODE" "value" "self_subject_access_review") -}}
{{- $before = append $before (dict "name" "MLFLOW_SERVER_CORS_ALLOWED_ORIGINS" "value" (include "mlflow.corsOrigins" .)) -}}
{{- $before = concat $before (include "mlflow.selectorEnv" .root | fromJsonArray) -}}
{{- $after := include "mlflow.cipherEnv" .root | fromJsonArray -}}
{{- $after = append $after (dict "name" "MLFLOW_SERVER_DISABLE_SECURITY_MIDDLEWARE" "value" "false") -}}
{{- $after = concat $after (include "mlflow.caEnv" (dict "root" .root "sources" .root.Values.caBundle.configMaps) | fromJsonArray) -}}
{{- include "mlflow.mergeEnv" (dict "before" $before "user" (include "mlflow.userEnv" .root | fromJsonArray) "after" $after) -}}
{{- end }}

{{/* Returns the variables of a CronJob. Arguments: root, and the lists first, own and after. */}}
{{- define "mlflow.choreEnv" -}}
{{- $before := concat (list (dict "name" "MLFLOW_DISABLE_TELEMETRY" "value" "true")) .first -}}
{{- $before = append $before (dict "name" "MLFLOW_ENABLE_WORKSPACES" "value" "true") -}}
{{- $before = append $before (dict "name" "MLFLOW_WORKSPACE_STORE_URI" "value" .root.Values.mlflow.workspaceStoreUri) -}}
{{- $before = concat $before (include "mlflow.selectorEnv" .root | fromJsonArray) (include "mlflow.backendEnv" .root | fromJsonArray) .own -}}
{{- include "mlflow.mergeEnv" (dict "before" $before "user" (include "mlflow.userEnv" .root | fromJsonArray) "after" .after) -}}
{{- end }}
