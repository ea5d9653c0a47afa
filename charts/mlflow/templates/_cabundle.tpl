{{/*
CA bundle. An init container concatenates the CAs of the image and of the sources into one file, which every client in the pod
trusts. In server pods, a second container updates the file. Without sources, the pod has neither.
*/}}

{{/*
Returns volumes and mounts for CA sources. Arguments: root, sources. A source has a mountPath and either name, a ConfigMap, or
secret, a Secret of type kubernetes.io/tls with the CA.
*/}}
{{- define "mlflow.caVolumes" -}}
{{- $all := list -}}
{{- range $i, $source := .sources -}}
{{- $volume := dict "name" (printf "ca-bundle-%d" $i) -}}
{{- if $source.secret -}}
{{- $_ := set $volume "secret" (dict "secretName" $source.secret "optional" true "items" (list (dict "key" "ca.crt" "path" "ca.crt"))) -}}
{{- else -}}
{{- $_ := set $volume "configMap" (dict "name" $source.name "optional" true) -}}
{{- end -}}
{{- $all = append $all (dict "volume" $volume) -}}
{{- end -}}
{{- if .sources -}}
{{- $volume := dict "name" "combined-ca-bundle" "emptyDir" dict -}}
{{- $mount := dict "name" "combined-ca-bundle" "mountPath" (dir .root.Values.caBundle.outputPath) "readOnly" true -}}
{{- $all = append $all (dict "volume" $volume "mount" $mount) -}}
{{- end -}}
{{- toJson $all -}}
{{- end }}

{{/* Prints a container that runs a program with the CA sources. Arguments: root, sources, name, program, env, resources. */}}
{{- define "mlflow.caContainer" -}}
{{- $bundle := .root.Values.caBundle -}}
{{- $paths := list -}}
{{- $mounts := list (dict "name" "tmp" "mountPath" "/tmp") (dict "name" "combined-ca-bundle" "mountPath" (dir $bundle.outputPath)) -}}
{{- range $i, $source := .sources -}}
{{- $paths = append $paths $source.mountPath -}}
{{- $mounts = append $mounts (dict "name" (printf "ca-bundle-%d" $i) "mountPath" $source.mountPath "readOnly" true) -}}
{{- end -}}
{{- $files := $bundle.filePaths | default (list "/etc/pki/tls/certs/ca-bundle.crt") -}}
{{- $env := append .env (dict "name" "CA_BUNDLE_FILE_PATHS" "value" (join " " $files)) -}}
{{- $env = append $env (dict "name" "CA_BUNDLE_MOUNT_PATHS" "value" (join " " $paths)) -}}
{{- $env = append $env (dict "name" "CA_BUNDLE_OUTPUT" "value" $bundle.outputPath) -}}
- name: {{ include "mlflow.json" .name }}
  {{- include "mlflow.container" .root | nindent 2 }}
  command:
    - /bin/sh
    - -c
    - {{ include "mlflow.json" .program }}
  env:
    {{- include "mlflow.items" $env | nindent 4 }}
  resources: {{ include "mlflow.json" .resources }}
  volumeMounts:
    {{- include "mlflow.items" $mounts | nindent 4 }}
{{- end }}

{{/* Prints initContainers if there are CA sources. Arguments: root, sources. */}}
{{- define "mlflow.caInit" -}}
{{- if .sources -}}
{{- $program := printf "%scombine\n" (.root.Files.Get "files/ca-bundle.sh") -}}
{{- $resources := dict "requests" (dict "cpu" "10m" "memory" "16Mi") "limits" (dict "cpu" "100m" "memory" "64Mi") -}}
initContainers:
  {{- include "mlflow.caContainer" (dict "root" .root "sources" .sources "name" "combine-ca-bundles" "program" $program "env" list "resources" $resources) | nindent 2 }}
{{- end -}}
{{- end }}

{{/* Prints the container that updates the CA bundle of a server, if there are CA sources. Arguments: root, sources. */}}
{{- define "mlflow.caWatcher" -}}
{{- if .sources -}}
{{- $program := printf "%s%s" (.root.Files.Get "files/ca-bundle.sh") (.root.Files.Get "files/ca-bundle-watch.sh") -}}
{{- $env := list (dict "name" "CA_BUNDLE_WATCH_INTERVAL" "value" (.root.Values.caBundle.watchInterval | int64 | toString)) -}}
{{- $resources := dict "requests" (dict "cpu" "5m" "memory" "8Mi") "limits" (dict "cpu" "50m" "memory" "32Mi") -}}
{{- include "mlflow.caContainer" (dict "root" .root "sources" .sources "name" "ca-bundle-watcher" "program" $program "env" $env "resources" $resources) -}}
{{- end -}}
{{- end }}

{{/*
Returns the variables that set the CA bundle of TLS clients. Arguments: root, sources. Clients of databases and object stores
verify certificates only if the user configures CAs. A CA that the chart itself adds does not change their connections.
*/}}
{{- define "mlflow.caEnv" -}}
{{- $env := list -}}
{{- $path := .root.Values.caBundle.outputPath -}}
{{- if .sources -}}
{{- range list "SSL_CERT_FILE" "REQUESTS_CA_BUNDLE" "CURL_CA_BUNDLE" "AWS_CA_BUNDLE" -}}
{{- $env = append $env (dict "name" . "value" $path) -}}
{{- end -}}
{{- if .root.Values.caBundle.configMaps -}}
{{- $env = append $env (dict "name" "PGSSLROOTCERT" "value" $path) -}}
{{- if and .root.Values.caBundle.verifyPostgres (not (include "mlflow.sslMode" .root)) -}}
{{- $env = append $env (dict "name" "PGSSLMODE" "value" "verify-full") -}}
{{- end -}}
{{- $env = append $env (dict "name" "MLFLOW_MYSQL_CA" "value" $path) -}}
{{- $env = append $env (dict "name" "MLFLOW_S3_IGNORE_TLS" "value" "false") -}}
{{- end -}}
{{- end -}}
{{- toJson $env -}}
{{- end }}

{{/* Prints "chosen" if the user sets sslmode for PostgreSQL, in the variable PGSSLMODE or in a URI, which libpq prefers. */}}
{{- define "mlflow.sslMode" -}}
{{- $chosen := false -}}
{{- range .Values.env -}}
{{- if eq .name "PGSSLMODE" }}{{ $chosen = true }}{{ end -}}
{{- end -}}
{{- range $field := list "backendStoreUri" "readReplicaBackendStoreUri" "registryStoreUri" -}}
{{- $uri := index $.Values.mlflow $field | default "" -}}
{{- $query := regexFind "\\?[^#]*" $uri | trimPrefix "?" -}}
{{- $named := regexMatch "(^|&)sslmode(=([^&;%]|%[0-9a-fA-F]{2})*)?(&|$)" $query -}}
{{- if and (hasPrefix "postgresql" $uri) (not (index $.Values.mlflow (printf "%sFrom" $field))) $named }}{{ $chosen = true }}{{ end -}}
{{- end -}}
{{- if $chosen }}chosen{{ end -}}
{{- end }}
