// Package resources builds the objects of ModelMesh in a namespace without access to the cluster. RuntimeInputs are the inputs for the
// objects of one runtime, NamespaceInputs those for the objects that all runtimes of a namespace share.
package resources

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// Form is the form of a runtime's pod template.
type Form int

const (
	// Current is the pod template of this operator.
	Current Form = iota
	// Legacy is the pod template of the legacy controller, without fields that prevent pods from running and without unintended mounts of
	// storage credentials. An adopted Deployment keeps it until another change, because a new template would restart the pods.
	Legacy
)

// TLSInputs describes the TLS Secret that pods mount.
type TLSInputs struct {
	SecretName string
	// HasCA is true if the Secret has a CA, which is then trusted for client certificates too.
	HasCA bool
}

// NamespaceInputs are the inputs for the objects of a namespace.
type NamespaceInputs struct {
	Namespace string
	// Settings are the settings of the namespace.
	Settings meshsettings.Settings
	// Proxy authenticates REST requests; nil for none.
	Proxy *authproxy.Proxy
	// TLS is nil if traffic is not encrypted.
	TLS *TLSInputs
	// OpenShift is true if the cluster has OpenShift routers and assigns a non-root user to each pod.
	OpenShift bool
	// OperatorNamespace is the namespace with the ModelMesh configuration, ManagerNamespace that of the manager's pods; "" is ignored.
	OperatorNamespace, ManagerNamespace string
}

// RuntimeInputs are the inputs for the objects of a runtime. [modelmesh.Validate] must accept Spec.
type RuntimeInputs struct {
	NamespaceInputs
	Form Form
	Name string
	// Annotations are the annotations of the runtime.
	Annotations map[string]string
	Spec        *v1alpha1.ServingRuntimeSpec
	// Claims are the names of the PersistentVolumeClaims to mount, see [Claims].
	Claims []string
	// Replicas is the replica count; nil leaves the field unset.
	Replicas *int32
	// Restricted is true if the namespace enforces the restricted Pod Security Standard.
	Restricted bool
}

// Labels of the objects. Selectors of clients, NetworkPolicies and Deployments contain some of them.
const (
	// LabelService is the label with the name of the Service. The Service, its ServiceMonitor, and the Deployments and their pods have it.
	LabelService = modelmesh.LabelService
	// LabelName is the label with the name of the Deployment. The Deployment and its pods have it.
	LabelName = "name"

	labelInstance  = "app.kubernetes.io/instance"
	LabelManagedBy = "app.kubernetes.io/managed-by"
	labelAppName   = "app.kubernetes.io/name"
	ControllerName = "modelmesh-controller"
)

// HasManagedByLabel reports whether LabelManagedBy of an object is ControllerName. The legacy controller set the same label.
func HasManagedByLabel(o metav1.Object) bool { return o.GetLabels()[LabelManagedBy] == ControllerName }

// commonLabels returns the common labels of the Service, its ServiceMonitor, the Deployments, their pods and the type constraints.
func commonLabels() map[string]string {
	return map[string]string{labelInstance: ControllerName, LabelManagedBy: ControllerName, labelAppName: ControllerName}
}

func serviceLabels(service string) map[string]string {
	labels := commonLabels()
	labels[LabelService] = service
	return labels
}

// DeploymentName returns the name of a runtime's Deployment. It is truncated to the length of a label value.
func DeploymentName(service, runtime string) string {
	return names.Truncate(service+"-"+runtime, validation.LabelValueMaxLength)
}

func (in *RuntimeInputs) deploymentName() string {
	return DeploymentName(in.Settings.ServiceName, in.Name)
}

func (in *RuntimeInputs) isLegacy() bool { return in.Form == Legacy }

// podBuilder builds a pod template.
type podBuilder struct {
	RuntimeInputs
	endpoints modelmesh.Endpoints
	claims    []claimVolume
	// notices describe the ignored parts of the spec and the settings.
	notices []string
}

func (p *podBuilder) addNotice(format string, args ...any) {
	p.notices = append(p.notices, fmt.Sprintf(format, args...))
}

// needsPuller reports whether the pod has a puller container.
func (p *podBuilder) needsPuller() bool {
	return p.Spec.BuiltInAdapter == nil && (p.Spec.StorageHelper == nil || !p.Spec.StorageHelper.Disabled)
}
