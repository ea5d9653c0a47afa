{{/* Helpers for pods of servers and CronJobs. */}}

{{/* Prints the block of the user unchanged, even if it is empty, or else the default. Arguments: given, default. */}}
{{- define "mlflow.block" -}}
{{- if kindIs "map" .given }}{{ toJson .given }}{{ else }}{{ toJson .default }}{{ end -}}
{{- end }}

{{- define "mlflow.containerSecurity" -}}
{{- $default := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" (dict "drop" (list "ALL")) -}}
{{- include "mlflow.block" (dict "given" .Values.securityContext "default" $default) -}}
{{- end }}

{{/* Prints a quantity as a number. */}}
{{- define "mlflow.amount" -}}
{{- $text := toString . -}}
{{- $number := regexFind "^[0-9.]+([eE][+-]?[0-9]+)?" $text -}}
{{- $units := dict "n" 1e-9 "u" 1e-6 "m" 1e-3 "" 1.0 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 -}}
{{- $units = merge $units (dict "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 "Ei" 1152921504606846976.0) -}}
{{- mulf (float64 $number) (get $units (trimPrefix $number $text)) -}}
{{- end }}

{{/* Returns the resources of the user, with defaults that do not conflict with them. Arguments: given, default. An empty block sets no resources. */}}
{{- define "mlflow.resources" -}}
{{- $given := .given | default dict -}}
{{- if and (kindIs "map" .given) (not (or $given.requests $given.limits)) -}}
{{- toJson $given -}}
{{- else -}}
{{- $requests := deepCopy ($given.requests | default dict) -}}
{{- range $name, $request := .default.requests -}}
{{- $limit := get ($given.limits | default dict) $name -}}
{{- if and (not (hasKey $requests $name)) (or (not $limit) (le (include "mlflow.amount" $request | float64) (include "mlflow.amount" $limit | float64))) -}}
{{- $_ := set $requests $name $request -}}
{{- end -}}
{{- end -}}
{{- $limits := deepCopy ($given.limits | default dict) -}}
{{- range $name, $limit := .default.limits -}}
{{- $request := get ($given.requests | default dict) $name -}}
{{- if and (not (hasKey $limits $name)) (or (not $request) (ge (include "mlflow.amount" $limit | float64) (include "mlflow.amount" $request | float64))) -}}
{{- $_ := set $limits $name $limit -}}
{{- end -}}
{{- end -}}
{{- toJson (merge (dict "requests" $requests "limits" $limits) $given) -}}
{{- end -}}
{{- end }}

{{/* Returns the resources of a server. */}}
{{- define "mlflow.serverResources" -}}
{{- $default := dict "requests" (dict "cpu" "1" "memory" "2Gi") "limits" (dict "cpu" "4" "memory" "3Gi") -}}
{{- include "mlflow.resources" (dict "given" . "default" $default) -}}
{{- end }}

{{/* Returns the resources of a CronJob. */}}
{{- define "mlflow.choreResources" -}}
{{- $default := dict "requests" (dict "cpu" "100m" "memory" "256Mi") "limits" (dict "cpu" "500m" "memory" "512Mi") -}}
{{- include "mlflow.resources" (dict "given" . "default" $default) -}}
{{- end }}

{{/*
Returns the affinity of a CronJob, which is that of the user. If the pod uses a volume that only one node can attach, it is scheduled
to the node of the server, unless the user sets a pod affinity or anti-affinity, which may conflict. Arguments: root, used (empty for no).
*/}}
{{- define "mlflow.choreAffinity" -}}
{{- $affinity := deepCopy (.root.Values.affinity | default dict) -}}
{{- $modes := .root.Values.storage.spec.accessModes | default (list .root.Values.storage.accessMode) -}}
{{- $decided := or (kindIs "map" $affinity.podAffinity) (kindIs "map" $affinity.podAntiAffinity) -}}
{{- if and .used (not (has "ReadWriteMany" $modes)) (not $decided) -}}
{{- $term := dict "labelSelector" (dict "matchLabels" (dict "app" (include "mlflow.name" .root))) "topologyKey" "kubernetes.io/hostname" -}}
{{- $_ := set $affinity "podAffinity" (dict "requiredDuringSchedulingIgnoredDuringExecution" (list $term)) -}}
{{- end -}}
{{- toJson $affinity -}}
{{- end }}

{{/* Prints the security context and scheduling fields of a pod spec. Arguments: root, affinity. */}}
{{- define "mlflow.placement" -}}
{{- with .root -}}
{{- $default := dict "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- if and .Values.storage.enabled .Values.fsGroup -}}
{{- $default = merge $default (dict "fsGroup" .Values.fsGroup "fsGroupChangePolicy" "OnRootMismatch") -}}
{{- end -}}
automountServiceAccountToken: true
securityContext: {{ include "mlflow.json" (include "mlflow.block" (dict "given" .Values.podSecurityContext "default" $default) | fromJson) }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- include "mlflow.items" . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ include "mlflow.json" . }}
{{- end }}
{{- with $.affinity }}
affinity: {{ include "mlflow.json" . }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- include "mlflow.items" . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ include "mlflow.json" . }}
{{- end }}
{{- end }}
{{- end }}

{{/* Prints the image and security context of a container of the MLflow image. */}}
{{- define "mlflow.container" -}}
image: {{ include "mlflow.json" (include "mlflow.image" .) }}
{{- with .Values.image.imagePullPolicy }}
imagePullPolicy: {{ include "mlflow.json" . }}
{{- end }}
securityContext: {{ include "mlflow.json" (include "mlflow.containerSecurity" . | fromJson) }}
{{- end }}

{{/* Prints env and envFrom of a container. Arguments: root, env. */}}
{{- define "mlflow.environment" -}}
env:
  {{- include "mlflow.items" .env | nindent 2 }}
{{- with .root.Values.envFrom }}
envFrom:
  {{- include "mlflow.items" . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Returns the scratch volumes with their mounts, each a dict with volume and mount. */}}
{{- define "mlflow.scratch" -}}
{{- $volume := dict "name" "tmp" "emptyDir" (dict "sizeLimit" .Values.temporaryStorage.sizeLimit) -}}
{{- toJson (list (dict "volume" $volume "mount" (dict "name" "tmp" "mountPath" "/tmp"))) -}}
{{- end }}

{{/* Returns the persistent volume of a pod that uses it. Arguments: root, used (empty for no). */}}
{{- define "mlflow.storage" -}}
{{- if .used -}}
{{- $volume := dict "name" "mlflow-storage" "persistentVolumeClaim" (dict "claimName" (printf "mlflow-pvc%s" .root.Values.resourceSuffix)) -}}
{{- toJson (list (dict "volume" $volume "mount" (dict "name" "mlflow-storage" "mountPath" "/mlflow"))) -}}
{{- else -}}
[]
{{- end -}}
{{- end }}

{{/* Returns the volume with the certificate of a server. Arguments: root, server. */}}
{{- define "mlflow.certificate" -}}
{{- $name := ternary "mlflow-tls" "mlflow-artifacts-tls" .server.tracking -}}
{{- $volume := dict "name" $name "secret" (dict "secretName" .server.secret "defaultMode" .root.Values.tls.defaultMode) -}}
{{- toJson (list (dict "volume" $volume "mount" (dict "name" $name "mountPath" "/etc/tls/private" "readOnly" true))) -}}
{{- end }}

{{- define "mlflow.metrics" -}}
{{- if .Values.metrics.enabled -}}
{{- $volume := dict "name" "metrics" "emptyDir" (dict "sizeLimit" "100Mi") -}}
{{- toJson (list (dict "volume" $volume "mount" (dict "name" "metrics" "mountPath" "/prometheus"))) -}}
{{- else -}}
[]
{{- end -}}
{{- end }}

{{- define "mlflow.archival" -}}
{{- if .Values.traceArchival.enabled -}}
{{- $volume := dict "name" "trace-archival-config" "configMap" (dict "name" (printf "mlflow-trace-archival-config%s" .Values.resourceSuffix)) -}}
{{- toJson (list (dict "volume" $volume "mount" (dict "name" "trace-archival-config" "mountPath" "/etc/mlflow" "readOnly" true))) -}}
{{- else -}}
[]
{{- end -}}
{{- end }}

{{/* Returns the volumes and mounts of the user. The prefix prevents name collisions with volumes of the chart. */}}
{{- define "mlflow.extra" -}}
{{- $all := list -}}
{{- range .Values.volumes -}}
{{- $all = append $all (dict "volume" (set (deepCopy .) "name" (printf "extra-%s" .name))) -}}
{{- end -}}
{{- range .Values.volumeMounts -}}
{{- $all = append $all (dict "mount" (set (deepCopy .) "name" (printf "extra-%s" .name))) -}}
{{- end -}}
{{- toJson $all -}}
{{- end }}

{{/* Returns volumeMounts and volumes of a list of volumes with their mounts. */}}
{{- define "mlflow.mounts" -}}
volumeMounts:
{{- range . }}
{{- with .mount }}
  - {{ include "mlflow.json" . }}
{{- end }}
{{- end }}
{{- end }}

{{- define "mlflow.volumes" -}}
volumes:
{{- range . }}
{{- with .volume }}
  - {{ include "mlflow.json" . }}
{{- end }}
{{- end }}
{{- end }}

{{/* Prints a CronJob. Arguments: root, name, app, schedule, account, command, args, env, resources, volumes, sources, used (as in choreAffinity). */}}
{{- define "mlflow.cronJob" -}}
{{- $volumes := concat .volumes (include "mlflow.extra" .root | fromJsonArray) -}}
apiVersion: batch/v1
kind: CronJob
metadata: {{ include "mlflow.metadata" (dict "root" .root "name" .app "app" .app) }}
spec:
  schedule: {{ include "mlflow.json" .schedule }}
  suspend: false
  concurrencyPolicy: Forbid
  successfulJobsHistoryLimit: 3
  failedJobsHistoryLimit: 3
  jobTemplate:
    spec:
      backoffLimit: 1
      activeDeadlineSeconds: 7200
      template:
        metadata:
          labels: {{ include "mlflow.json" (include "mlflow.podLabels" (dict "root" .root "app" .app) | fromJson) }}
        spec:
          serviceAccountName: {{ include "mlflow.json" .account }}
          restartPolicy: Never
          {{- include "mlflow.placement" (dict "root" .root "affinity" (include "mlflow.choreAffinity" (dict "root" .root "used" .used) | fromJson)) | nindent 10 }}
          {{- with include "mlflow.caInit" (dict "root" .root "sources" .sources) }}
          {{- . | nindent 10 }}
          {{- end }}
          containers:
            - name: {{ include "mlflow.json" .name }}
              {{- include "mlflow.container" .root | nindent 14 }}
              command:
                {{- include "mlflow.items" .command | nindent 16 }}
              {{- with .args }}
              args:
                {{- include "mlflow.items" . | nindent 16 }}
              {{- end }}
              {{- include "mlflow.environment" (dict "root" .root "env" .env) | nindent 14 }}
              resources: {{ include "mlflow.json" .resources }}
              {{- include "mlflow.mounts" $volumes | nindent 14 }}
          {{- include "mlflow.volumes" $volumes | nindent 10 }}
{{- end }}
