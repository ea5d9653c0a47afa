{{/* Helpers for the persistent volume. They print "used" if a pod has data in it; only such pods mount it. */}}

{{/* Prints "used" if a store is or may be an SQLite file. Arguments: root, fields. A URI in a Secret is unknown, so it may be a file,
except with a separate server for artifacts, which requires remote stores. */}}
{{- define "mlflow.mayBeFile" -}}
{{- $found := false -}}
{{- range $field := .fields -}}
{{- if and (not $.root.Values.artifactsServer.enabled) (or (index $.root.Values.mlflow (printf "%sFrom" $field)) (hasPrefix "sqlite" (index $.root.Values.mlflow $field | default ""))) -}}
{{- $found = true -}}
{{- end -}}
{{- end -}}
{{- if $found }}used{{ end -}}
{{- end }}

{{/* Prints a value if MLflow treats a location as a local path: it has no scheme, or the scheme file. */}}
{{- define "mlflow.isFile" -}}
{{- if and . (or (not (regexMatch "^[a-zA-Z][a-zA-Z0-9+.-]*:" .)) (regexMatch "^(?i:file):" .)) }}file{{ end -}}
{{- end }}

{{- define "mlflow.archivesToFiles" -}}
{{- if and .Values.traceArchival.enabled (include "mlflow.isFile" .Values.traceArchival.location) }}used{{ end -}}
{{- end }}

{{- define "mlflow.serverUsesVolume" -}}
{{- $stores := include "mlflow.mayBeFile" (dict "root" . "fields" (list "backendStoreUri" "readReplicaBackendStoreUri" "registryStoreUri")) -}}
{{- $serves := and .Values.mlflow.serveArtifacts (not .Values.artifactsServer.enabled) (include "mlflow.isFile" (.Values.mlflow.artifactsDestination | default "file:")) -}}
{{- $root := include "mlflow.isFile" (.Values.mlflow.defaultArtifactRoot | default "") -}}
{{- if and .Values.storage.enabled (or $stores $serves $root (include "mlflow.archivesToFiles" .)) }}used{{ end -}}
{{- end }}

{{- define "mlflow.archiverUsesVolume" -}}
{{- $stores := include "mlflow.mayBeFile" (dict "root" . "fields" (list "backendStoreUri" "registryStoreUri")) -}}
{{- if and .Values.storage.enabled (or $stores (include "mlflow.archivesToFiles" .)) }}used{{ end -}}
{{- end }}

{{- define "mlflow.collectorUsesVolume" -}}
{{- $store := include "mlflow.mayBeFile" (dict "root" . "fields" (list "backendStoreUri")) -}}
{{- if and .Values.storage.enabled (or $store (include "mlflow.isFile" (.Values.mlflow.defaultArtifactRoot | default ""))) }}used{{ end -}}
{{- end }}

{{/* Prints a storage quantity as a number of bytes, for comparisons. */}}
{{- define "mlflow.bytes" -}}
{{- $text := toString . -}}
{{- $unit := regexFind "[A-Za-z]+$" $text -}}
{{- $size := dict "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 -}}
{{- mulf (trimSuffix $unit $text | float64) (get $size $unit | default 1.0) -}}
{{- end -}}
