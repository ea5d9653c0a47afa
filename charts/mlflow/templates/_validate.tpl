{{/* Validates rules that the schema of the values cannot express. A failure names the value and the fix. */}}
{{- define "mlflow.validate" -}}
{{- $storage := .Values.storage.enabled -}}
{{- with .Values.mlflow -}}
{{- if not $storage -}}
{{- range $field := list "backendStoreUri" "readReplicaBackendStoreUri" "registryStoreUri" -}}
{{- $from := index $.Values.mlflow (printf "%sFrom" $field) -}}
{{- if and (not $from) (hasPrefix "sqlite://" (index $.Values.mlflow $field | default "")) -}}
{{- fail (printf "storage must be enabled when mlflow.%s is a file: set storage.enabled, or a remote database" $field) -}}
{{- end -}}
{{- end -}}
{{- if and (or .serveArtifacts $.Values.artifactsServer.enabled) (include "mlflow.isFile" (.artifactsDestination | default "file:")) -}}
{{- fail "storage must be enabled when mlflow.artifactsDestination uses file-based storage: set storage.enabled, or a destination such as s3://bucket/path" -}}
{{- end -}}
{{- end -}}
{{- if $.Values.artifactsServer.enabled -}}
{{- include "mlflow.validateArtifacts" $ -}}
{{- else if not .serveArtifacts -}}
{{- if not .defaultArtifactRoot -}}
{{- fail "mlflow.defaultArtifactRoot must be set when mlflow.serveArtifacts is not true" -}}
{{- end -}}
{{- if include "mlflow.isFile" .defaultArtifactRoot -}}
{{- fail "mlflow.serveArtifacts must be enabled when mlflow.defaultArtifactRoot uses file-based storage" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if gt (int64 .Values.replicaCount) 1 -}}
{{- $modes := .Values.storage.spec.accessModes | default (list .Values.storage.accessMode) -}}
{{- if and (include "mlflow.serverUsesVolume" .) (not (has "ReadWriteMany" $modes)) -}}
{{- fail "replicaCount must be 1 unless storage.accessMode is ReadWriteMany, because other volumes are attached to one node at a time: set storage.accessMode, or keep data and artifacts elsewhere; with a store URI in a Secret, set storage.enabled to false too" -}}
{{- end -}}
{{- range $field := list "backendStoreUri" "readReplicaBackendStoreUri" "registryStoreUri" -}}
{{- if and (not (index $.Values.mlflow (printf "%sFrom" $field))) (hasPrefix "sqlite" (index $.Values.mlflow $field | default "")) -}}
{{- fail (printf "replicaCount must be 1 with an SQLite store, because several servers damage or block the file: set mlflow.%s to a postgresql or mysql store" $field) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with .Values.traceArchival -}}
{{- if .enabled -}}
{{- range $field := list "schedule" "location" "retention" -}}
{{- if not (index $.Values.traceArchival $field) -}}
{{- fail (printf "traceArchival.%s is required when traceArchival.enabled is true" $field) -}}
{{- end -}}
{{- end -}}
{{- if and (not $storage) (include "mlflow.isFile" .location) -}}
{{- fail "storage must be enabled when traceArchival.location uses file-based storage" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.garbageCollection.enabled (not .Values.garbageCollection.schedule) -}}
{{- fail "garbageCollection.schedule is required when garbageCollection.enabled is true" -}}
{{- end -}}
{{- end }}

{{/* Validates the values of the server for artifacts. */}}
{{- define "mlflow.validateArtifacts" -}}
{{- $modes := .Values.storage.spec.accessModes | default (list .Values.storage.accessMode) -}}
{{- with .Values.mlflow -}}
{{- if .serveArtifacts -}}
{{- fail "mlflow.serveArtifacts and artifactsServer.enabled are mutually exclusive: set mlflow.serveArtifacts to false" -}}
{{- end -}}
{{- if .defaultArtifactRoot -}}
{{- fail "mlflow.defaultArtifactRoot and artifactsServer.enabled are mutually exclusive, because the root is then below artifactsServer.url: remove mlflow.defaultArtifactRoot" -}}
{{- end -}}
{{- if not .artifactsDestination -}}
{{- fail "mlflow.artifactsDestination must be set when artifactsServer.enabled is true: write a location such as s3://bucket/path" -}}
{{- end -}}
{{- if and (include "mlflow.isFile" .artifactsDestination) (gt (int64 $.Values.artifactsServer.replicas) 1) (not (has "ReadWriteMany" $modes)) -}}
{{- fail "artifactsServer.replicas must be 1 with mlflow.artifactsDestination in files unless storage.accessMode is ReadWriteMany: set storage.accessMode, or a destination such as s3://bucket/path" -}}
{{- end -}}
{{- range $field := list "backendStoreUri" "readReplicaBackendStoreUri" "registryStoreUri" -}}
{{- if and (not (index $.Values.mlflow (printf "%sFrom" $field))) (hasPrefix "sqlite" (index $.Values.mlflow $field | default "")) -}}
{{- fail (printf "mlflow.%s must not be SQLite when artifactsServer.enabled is true, because two servers use the store at once: set it to a postgresql or mysql store" $field) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not .Values.artifactsServer.url -}}
{{- fail "artifactsServer.url must be set when artifactsServer.enabled is true: write the public URL below which the paths of the servers are reached, such as https://mlflow.example.com" -}}
{{- end -}}
{{- with .Values.traceArchival -}}
{{- if and .enabled (include "mlflow.isFile" .location) (not (has "ReadWriteMany" $modes)) -}}
{{- fail "storage.accessMode must be ReadWriteMany when artifactsServer.enabled is true and traceArchival.location is in files: set storage.accessMode, or a location such as s3://bucket/path" -}}
{{- end -}}
{{- end -}}
{{- end }}
