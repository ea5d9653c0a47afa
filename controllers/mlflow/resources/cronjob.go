package resources

import (
	_ "embed"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/yaml"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// CronJobDeadlineSeconds limits each run. The next run continues, because garbage collection and archival commit each item.
const CronJobDeadlineSeconds = 2 * 60 * 60

// cronJob returns a CronJob of a container, with the pod settings of the server. Its name and its label app are the name of the container
// with the suffix of the MLflow. Runs do not overlap.
func cronJob(m *mlflowv1.MLflow, in Inputs, container *corev1ac.ContainerApplyConfiguration, account string, schedule mlflowv1.CronSchedule,
	usesVolume bool, parts ...part,
) *batchv1ac.CronJobApplyConfiguration {
	name := Suffixed(*container.Name, m)
	pod := newPod(m, in, account, container, parts...).WithRestartPolicy(corev1.RestartPolicyNever)
	if usesVolume {
		addServerAffinity(m, pod)
	}
	return batchv1ac.CronJob(name, in.Namespace).
		WithLabels(Labels(name)).
		WithSpec(batchv1ac.CronJobSpec().
			WithSchedule(string(schedule)).
			WithSuspend(false).
			WithConcurrencyPolicy(batchv1.ForbidConcurrent).
			WithSuccessfulJobsHistoryLimit(3).
			WithFailedJobsHistoryLimit(3).
			WithJobTemplate(batchv1ac.JobTemplateSpec().
				WithSpec(batchv1ac.JobSpec().WithBackoffLimit(1).WithActiveDeadlineSeconds(CronJobDeadlineSeconds).
					WithTemplate(corev1ac.PodTemplateSpec().WithLabels(podLabelsOf(name, m)).WithSpec(pod)))))
}

// cronJobContainer returns a container of the MLflow image, with small resources by default.
func cronJobContainer(m *mlflowv1.MLflow, in Inputs, name string, spec *corev1.ResourceRequirements) *corev1ac.ContainerApplyConfiguration {
	return imageContainer(m, in, name).WithResources(resourcesWithDefaults(spec, smallResources()))
}

// cronJobEnv returns the environment of a CronJob in this order: common variables including config, specific, spec.env and last.
func cronJobEnv(m *mlflowv1.MLflow, config, specific, last []envVar) []envVar {
	before := slices.Concat([]envVar{value(envDisableTelemetry, "true")}, config,
		[]envVar{value(envWorkspaces, "true"), value(envWorkspaceStore, workspaceStore)}, selectorEnv(m),
		[]envVar{Stores(m)[0].envVar(envBackendStore)}, specific)
	return mergeEnv(before, userEnv(m), last)
}

// collectionProgram runs `mlflow gc` with a URI from a Secret. The command does not read the store from the environment, and all processes of
// a node can see command lines.
//
//go:embed collect.py
var collectionProgram string

// garbageCollectionCronJob returns the CronJob that permanently removes resources that users have deleted, in all workspaces. It accesses
// the database directly and deletes served artifacts through the server.
func garbageCollectionCronJob(m *mlflowv1.MLflow, in Inputs) *batchv1ac.CronJobApplyConfiguration {
	caBundle := garbageCollectionCABundle(m, in)
	command, args := []string{"mlflow"}, []string{"gc"}
	if uri := Stores(m)[0].URI; uri != "" {
		args = append(args, "--backend-store-uri="+uri)
	} else {
		command = []string{"python3.12", "-c", collectionProgram}
	}
	if age := m.Spec.GarbageCollection.OlderThan; age != "" {
		args = append(args, "--older-than="+age)
	}
	container := cronJobContainer(m, in, GCBaseName, m.Spec.GarbageCollection.Resources).
		WithCommand(command...).
		WithArgs(args...).
		WithArgs("--all-workspaces")
	container.Env = cronJobEnv(m, nil, []envVar{
		value("MLFLOW_TRACKING_URI", artifactServer(m).address(in)),
		value(envInsecureTLS, "false"),
		value("MLFLOW_TRACKING_AUTH", "kubernetes"),
	}, caBundle.env)
	usesVolume := garbageCollectionUsesVolume(m)
	return cronJob(m, in, container, gcServiceAccount, m.Spec.GarbageCollection.Schedule, usesVolume,
		withScratch(m), withVolume(m, usesVolume), caBundle)
}

// garbageCollectionCABundle returns the CAs of the server's pods and the CA of the server's certificate: the service CA on OpenShift,
// otherwise the CA in the Secret of the certificate. If that Secret is the only source, only calls to the server trust it.
func garbageCollectionCABundle(m *mlflowv1.MLflow, in Inputs) part {
	sources, issuer := caSources(m, in), caSource{secret: artifactServer(m).Secret, path: serviceCAPath}
	if in.OpenShift {
		issuer = caSource{configMap: serviceCAName, path: serviceCAPath}
	}
	caBundle := withCABundle(m, in, append(sources, issuer), false)
	if !in.OpenShift && len(sources) == 0 {
		caBundle.env = []envVar{value("MLFLOW_TRACKING_SERVER_CERT_PATH", combinedBundle)}
	}
	return caBundle
}

const (
	archivalConfigName = "mlflow-trace-archival-config"
	archivalVolume     = "trace-archival-config"
	archivalFile       = "trace-archival.yaml"
	archivalPath       = "/etc/mlflow"

	envArchivalConfig = "MLFLOW_TRACE_ARCHIVAL_CONFIG"

	// envServerStore is the variable from which archival reads the store. In the server, MLflow sets it for child processes.
	envServerStore = "_MLFLOW_SERVER_FILE_STORE"

	archivalProgram = "from mlflow.tracing.trace_archival_service import run_trace_archival_scheduler; run_trace_archival_scheduler()"
)

// Archives reports whether trace archival is enabled.
func Archives(m *mlflowv1.MLflow) bool {
	return m.Spec.TraceArchival != nil && m.Spec.TraceArchival.Enabled
}

// archivalConfig is the content of the key trace_archival in the configuration file of MLflow.
type archivalConfig struct {
	Enabled                bool     `json:"enabled"`
	Location               string   `json:"location,omitempty"`
	Retention              string   `json:"retention,omitempty"`
	MaxTracesPerPass       *int32   `json:"max_traces_per_pass,omitempty"`
	LongRetentionAllowlist []string `json:"long_retention_allowlist,omitempty"`
}

// archivalConfigYAML returns the content of the configuration file. The encoder quotes strings that YAML would read as numbers, such as experiment IDs.
func archivalConfigYAML(m *mlflowv1.MLflow) (string, error) {
	spec := m.Spec.TraceArchival
	text, err := yaml.Marshal(map[string]archivalConfig{"trace_archival": {
		Enabled:                true,
		Location:               spec.Location,
		Retention:              spec.Retention,
		MaxTracesPerPass:       spec.MaxTracesPerPass,
		LongRetentionAllowlist: spec.LongRetentionAllowlist,
	}})
	if err != nil {
		return "", fmt.Errorf("encoding spec.traceArchival: %w", err)
	}
	return string(text), nil
}

// archivalConfigMap returns the ConfigMap with the configuration file.
func archivalConfigMap(m *mlflowv1.MLflow, in Inputs) *corev1ac.ConfigMapApplyConfiguration {
	text, err := archivalConfigYAML(m)
	utilruntime.Must(err) // see Check
	return corev1ac.ConfigMap(Suffixed(archivalConfigName, m), in.Namespace).
		WithLabels(Labels(NameOf(m))).
		WithData(map[string]string{archivalFile: text})
}

// ArchivalReference returns the reference to the configuration file and the hash of its desired content, so that one reconcile changes the
// file and rolls out the server.
func ArchivalReference(m *mlflowv1.MLflow) (ref reference.Reference, hash string) {
	text, err := archivalConfigYAML(m)
	utilruntime.Must(err) // see Check
	ref = reference.Reference{Kind: reference.ConfigMap, Name: Suffixed(archivalConfigName, m), Keys: []string{archivalFile}}
	return ref, ShortHash(text)
}

// withArchival mounts the configuration file.
func withArchival(m *mlflowv1.MLflow) part {
	if !Archives(m) {
		return part{}
	}
	source := corev1ac.ConfigMapVolumeSource().WithName(Suffixed(archivalConfigName, m))
	return withMount(corev1ac.Volume().WithName(archivalVolume).WithConfigMap(source), resources.ReadOnlyMount(archivalVolume, archivalPath))
}

// archivalEnv returns the variable with the path of the configuration file.
func archivalEnv(m *mlflowv1.MLflow) []envVar {
	if !Archives(m) {
		return nil
	}
	return []envVar{value(envArchivalConfig, archivalPath+"/"+archivalFile)}
}

// archivalCronJob returns the CronJob that moves old traces from the database to the archive.
func archivalCronJob(m *mlflowv1.MLflow, in Inputs) *batchv1ac.CronJobApplyConfiguration {
	caBundle := withCABundle(m, in, caSources(m, in), false)
	container := cronJobContainer(m, in, ArchivalBaseName, m.Spec.TraceArchival.Resources).WithCommand("python3.12", "-c", archivalProgram)
	specific := append([]envVar{Stores(m)[0].envVar(envServerStore)}, caBundle.env...)
	container.Env = cronJobEnv(m, archivalEnv(m), specific, platformEnv(in))
	usesVolume := archivalUsesVolume(m)
	return cronJob(m, in, container, archivalServiceAccount, m.Spec.TraceArchival.Schedule, usesVolume,
		withScratch(m), withArchival(m), withVolume(m, usesVolume), caBundle)
}
