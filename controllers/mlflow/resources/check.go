package resources

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
)

// imagePattern matches an image reference: registry and repository, then an optional tag and an optional digest.
var imagePattern = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127})?(@[a-z0-9]+([+._-][a-z0-9]+)*:[0-9a-fA-F]{32,})?$`)

var accessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod}

// Check validates the spec beyond its CRD schema, and returns all errors, sorted.
func Check(m *mlflowv1.MLflow, in Inputs) error {
	spec := &m.Spec
	var errs []error
	invalid := func(field string, value any, fix string) {
		errs = append(errs, fmt.Errorf("spec.%s: %q %s", field, fmt.Sprint(value), fix))
	}
	if name := spec.ServiceAccountName; name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
		invalid("serviceAccountName", name, "cannot be the name of a ServiceAccount: use lower-case letters, digits, - and .")
	}
	if spec.Image != nil && spec.Image.Image != "" && !imagePattern.MatchString(spec.Image.Image) {
		invalid("image.image", spec.Image.Image, "is not an image reference: write one such as quay.io/example/mlflow:v3")
	}
	for i, e := range spec.Env {
		if len(validation.IsRelaxedEnvVarName(e.Name)) > 0 {
			invalid(fmt.Sprintf("env[%d].name", i), e.Name, "cannot be the name of an environment variable: use printable characters without =")
		}
	}
	for key, value := range spec.NodeSelector {
		if text := slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)); len(text) > 0 {
			invalid("nodeSelector", key+"="+value, "cannot be a label of a node: "+strings.Join(text, "; "))
		}
	}
	if _, err := metav1.LabelSelectorAsSelector(spec.WorkspaceLabelSelector); err != nil {
		errs = append(errs, fmt.Errorf("reading spec.workspaceLabelSelector: %w", err))
	}
	checkTolerations(spec.Tolerations, invalid)
	checkStorage(spec.Storage, invalid)
	errs = append(errs, checkStores(m)...)
	if HasArtifactsServer(m) && in.ExternalURL == "" {
		errs = append(errs, errors.New("spec.artifactsServer.enabled: the artifacts server needs a public URL, because it is the base of the artifact location of new experiments: "+
			"set MLFLOW_URL of the operator, or the domain of the gateway in the MLflowOperator"))
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// checkStores validates the stores of the server and of trace archival.
func checkStores(m *mlflowv1.MLflow) (errs []error) {
	spec := &m.Spec
	for _, s := range Stores(m) {
		if s.From != nil && (s.From.Name == "" || s.From.Key == "") {
			errs = append(errs, fmt.Errorf("spec.%sFrom must include non-empty 'name' and 'key'", s.Field))
		}
	}
	if Archives(m) && spec.Storage == nil && isFile(spec.TraceArchival.Location) {
		errs = append(errs, errors.New("storage must be enabled when traceArchival.location uses file-based storage: add spec.storage"))
	}
	if Archives(m) {
		if _, err := archivalConfigYAML(m); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func checkTolerations(tolerations []corev1.Toleration, invalid func(string, any, string)) {
	operators := []corev1.TolerationOperator{"", corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpLt, corev1.TolerationOpGt}
	effects := []corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	for i := range tolerations {
		t, field := &tolerations[i], fmt.Sprintf("tolerations[%d].", i)
		switch {
		case !slices.Contains(operators, t.Operator):
			invalid(field+"operator", t.Operator, "is unknown: use Exists or Equal")
		case t.Key == "" && t.Operator != corev1.TolerationOpExists:
			invalid(field+"key", t.Key, "is valid only with operator Exists, and the default is Equal: set key, or use operator Exists")
		case t.Key != "" && len(validation.IsQualifiedName(t.Key)) > 0:
			invalid(field+"key", t.Key, "cannot be the key of a taint: use letters, digits, -, _ and ., optionally after a domain and /")
		case t.Operator == corev1.TolerationOpExists && t.Value != "":
			invalid(field+"value", t.Value, "has no meaning with Exists: remove it")
		case !slices.Contains(effects, t.Effect):
			invalid(field+"effect", t.Effect, "is unknown: use NoSchedule, PreferNoSchedule or NoExecute")
		case t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute:
			invalid(field+"tolerationSeconds", *t.TolerationSeconds, "needs the effect NoExecute: set effect, or remove tolerationSeconds")
		}
	}
}

func checkStorage(storage *corev1.PersistentVolumeClaimSpec, invalid func(string, any, string)) {
	if storage == nil {
		return
	}
	for i, mode := range storage.AccessModes {
		if !slices.Contains(accessModes, mode) {
			invalid(fmt.Sprintf("storage.accessModes[%d]", i), mode, "is unknown: use ReadWriteOnce, ReadWriteMany or ReadWriteOncePod")
		}
	}
	if size, found := storage.Resources.Requests[corev1.ResourceStorage]; found && size.Sign() <= 0 {
		invalid("storage.resources.requests.storage", size.String(), "is not a size: write one such as 10Gi")
	}
}
