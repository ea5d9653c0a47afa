package resources

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/yaml"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
)

const (
	archivalConfigName = "mlflow-trace-archival-config"
	archivalVolume     = "trace-archival-config"
	archivalFile       = "trace-archival.yaml"
	archivalPath       = "/etc/mlflow"

	envArchivalConfig = "MLFLOW_TRACE_ARCHIVAL_CONFIG"

	// envServerStore is where the archiver looks for the database. Only the program of the server sets it, for its children.
	envServerStore = "_MLFLOW_SERVER_FILE_STORE"

	archivalProgram = "from mlflow.tracing.trace_archival_service import run_trace_archival_scheduler; run_trace_archival_scheduler()"
)

// Archives reports whether trace archival is switched on.
func Archives(m *mlflowv1.MLflow) bool {
	return m.Spec.TraceArchival != nil && m.Spec.TraceArchival.Enabled
}

// archivalDocument is the file that server and archiver read. Its names and
// shape are those of MLflow.
type archivalDocument struct {
	TraceArchival archivalTerms `json:"trace_archival"`
}

type archivalTerms struct {
	Enabled                bool     `json:"enabled"`
	Location               string   `json:"location,omitempty"`
	Retention              string   `json:"retention,omitempty"`
	MaxTracesPerPass       *int32   `json:"max_traces_per_pass,omitempty"`
	LongRetentionAllowlist []string `json:"long_retention_allowlist,omitempty"`
}

// archivalText is the content of the file. The encoder quotes whatever YAML
// would not read as text, such as the number of an experiment.
func archivalText(m *mlflowv1.MLflow) (string, error) {
	spec := m.Spec.TraceArchival
	text, err := yaml.Marshal(archivalDocument{archivalTerms{
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

// archivalSettings is the ConfigMap with the file, if archival is on.
func archivalSettings(m *mlflowv1.MLflow, in Inputs) []runtime.ApplyConfiguration {
	if !Archives(m) {
		return nil
	}
	text, err := archivalText(m)
	utilruntime.Must(err) // see Check
	return []runtime.ApplyConfiguration{
		corev1ac.ConfigMap(Suffixed(archivalConfigName, m), in.Namespace).
			WithLabels(Labels(NameOf(m))).
			WithData(map[string]string{archivalFile: text}),
	}
}

// ArchivalReference is the file as something that the server consumes. Its hash
// is that of what is about to be written, so that file and server change in one
// reconcile.
func ArchivalReference(m *mlflowv1.MLflow) (ref reference.Reference, hash string) {
	text, err := archivalText(m)
	utilruntime.Must(err) // see Check
	ref = reference.Reference{Kind: reference.ConfigMap, Name: Suffixed(archivalConfigName, m), Keys: []string{archivalFile}}
	return ref, ShortHash(text)
}

// withArchival gives a pod the file and its path.
func withArchival(m *mlflowv1.MLflow) part {
	if !Archives(m) {
		return part{}
	}
	source := corev1ac.ConfigMapVolumeSource().WithName(Suffixed(archivalConfigName, m))
	return part{
		volumes: []*corev1ac.VolumeApplyConfiguration{corev1ac.Volume().WithName(archivalVolume).WithConfigMap(source)},
		mounts:  []*corev1ac.VolumeMountApplyConfiguration{mount(archivalVolume, archivalPath).WithReadOnly(true)},
	}
}

// archivalEnv is the variable that goes with withArchival.
func archivalEnv(m *mlflowv1.MLflow) []envVar {
	if !Archives(m) {
		return nil
	}
	return []envVar{value(envArchivalConfig, archivalPath+"/"+archivalFile)}
}

// archiver moves old traces from the database to the archive.
func archiver(m *mlflowv1.MLflow, in Inputs) *batchv1ac.CronJobApplyConfiguration {
	authorities := withCABundle(m, in, caSources(m, in))
	backend := backendVar(m)
	backend.Name = new(envServerStore)
	return cronJob(m, in, chore{
		name:      ArchivalBaseName,
		schedule:  m.Spec.TraceArchival.Schedule,
		account:   archivalAccount,
		command:   []string{"python3.12", "-c", archivalProgram},
		env:       choreEnv(m, archivalEnv(m), append([]envVar{backend}, authorities.env...), platformEnv(in)),
		resources: resourcesOf(m.Spec.TraceArchival.Resources, choreResources()),
		volume:    archiverUsesVolume(m),
		parts:     []part{withScratch(m), withArchival(m), withVolume(m, archiverUsesVolume(m)), authorities},
	})
}
