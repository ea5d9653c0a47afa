package resources

import (
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// ConstraintsName is the name of the ConfigMap that all pods of a namespace read.
const ConstraintsName = "tc-config"

const (
	constraintsKey = "type_constraints"
	dataPlaneKey   = "dataplane_api_config"
)

// BuildConstraints renders the ConfigMap that tells the pods of a namespace which of its runtimes serve which models. Runtimes are
// all of the namespace by name; those that do not serve count for nothing.
func BuildConstraints(namespace string, runtimes map[string]*v1alpha1.ServingRuntimeSpec, restProxy bool) (*corev1ac.ConfigMapApplyConfiguration, error) {
	constraints, err := mm.TypeConstraints(runtimes, restProxy)
	if err != nil {
		return nil, err
	}
	return corev1ac.ConfigMap(ConstraintsName, namespace).
		WithLabels(commonLabels()).
		WithBinaryData(map[string][]byte{constraintsKey: constraints, dataPlaneKey: []byte(mm.DataPlaneConfig())}), nil
}

// BuildEtcdSecret renders the Secret by which the pods of a namespace reach etcd.
func BuildEtcdSecret(name, namespace string, data map[string][]byte) *corev1ac.SecretApplyConfiguration {
	return corev1ac.Secret(name, namespace).
		WithLabels(map[string]string{LabelManagedBy: ControllerName}).
		WithData(data)
}
