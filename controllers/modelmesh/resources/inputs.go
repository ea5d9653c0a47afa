// Package resources builds the objects of ModelMesh in a namespace: pure functions of RuntimeInputs, what one runtime depends on, and of
// NamespaceInputs, what all runtimes of a namespace have in common. A file is named after what it builds.
package resources

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// Form says how the pods of a runtime are rendered.
type Form int

const (
	// Current pods have everything that this program knows better than the original.
	Current Form = iota
	// Original pods are those that the original rendered, field by field. Deployments that are taken over from it keep them as long
	// as nothing else changes, so that no pod restarts. They lack what no pod could run with, and no container sees the credentials
	// of the storage by mistake.
	Legacy
)

// TLSInputs describe the Secret that pods speak TLS with.
type TLSInputs struct {
	SecretName string
	// HasCA: the Secret has a CA beside its certificate, by which certificates of clients are accepted too.
	HasCA bool
}

// NamespaceInputs is what the objects of a namespace depend on.
type NamespaceInputs struct {
	Namespace string
	// Settings are those of the namespace.
	Settings meshsettings.Settings
	// Proxy guards REST; nil is none.
	Proxy *authproxy.Proxy
	// TLS is nil when traffic is not encrypted.
	TLS *TLSInputs
	// OpenShift: routers reach the pods from outside, and the platform gives each pod a user that is not root.
	OpenShift bool
	// Home is the namespace of the manager.
	OperatorNamespace string
}

// RuntimeInputs is what the objects of one runtime depend on. The spec is one that [mm.Validate] accepts.
type RuntimeInputs struct {
	NamespaceInputs
	Form Form
	Name string
	// Annotations are those of the runtime.
	Annotations map[string]string
	Spec        *v1alpha1.ServingRuntimeSpec
	// Claims are the names of the PersistentVolumeClaims to mount, see [Claims].
	Claims []string
	// Replicas is the number of pods; nil leaves it to others.
	Replicas *int32
	// Restricted: the namespace refuses pods that might run as root.
	Restricted bool
}

// Labels that clients, network policies and older Deployments select by.
const (
	// LabelService names the Service, on all objects of a mesh and on its pods.
	LabelService = mm.LabelService
	// LabelName names the Deployment, on its pods.
	LabelName = "name"

	labelInstance  = "app.kubernetes.io/instance"
	LabelManagedBy = "app.kubernetes.io/managed-by"
	labelAppName   = "app.kubernetes.io/name"
	ControllerName = "modelmesh-controller"
)

// commonLabels are on every object but the copy of the etcd Secret.
func commonLabels() map[string]string {
	return map[string]string{labelInstance: ControllerName, LabelManagedBy: ControllerName, labelAppName: ControllerName}
}

func serviceLabels(service string) map[string]string {
	labels := commonLabels()
	labels[LabelService] = service
	return labels
}

// DeploymentName is the name of the Deployment of a runtime. A label holds it, so a longer one is shortened.
func DeploymentName(service, runtime string) string {
	return names.Truncate(service+"-"+runtime, validation.LabelValueMaxLength)
}

func (in *RuntimeInputs) deploymentName() string {
	return DeploymentName(in.Settings.ServiceName, in.Name)
}

func (in *RuntimeInputs) isLegacy() bool { return in.Form == Legacy }

// pod is a pod template on its way.
type podBuilder struct {
	RuntimeInputs
	endpoints mm.Endpoints
	claims    []claimVolume
	// notices tell what was left out.
	notices []string
}

func (p *podBuilder) addNotice(format string, args ...any) {
	p.notices = append(p.notices, fmt.Sprintf(format, args...))
}

// pulls tells whether a container of its own fetches the models.
func (p *podBuilder) needsPuller() bool {
	return p.Spec.BuiltInAdapter == nil && (p.Spec.StorageHelper == nil || !p.Spec.StorageHelper.Disabled)
}
