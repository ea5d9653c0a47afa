package modelmesh_pods_test

import (
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
)

// variant is a named change of the inputs for a runtime.
type variant struct {
	name   string
	change func(*resources.RuntimeInputs)
}

// bases are the types of runtimes.
var bases = []variant{
	{"a puller", func(*resources.RuntimeInputs) {}},
	{"no puller", func(in *resources.RuntimeInputs) { in.Spec.StorageHelper = &v1alpha1.StorageHelper{Disabled: true} }},
	{"an adapter", func(in *resources.RuntimeInputs) {
		in.Spec.Containers[0].Name = "triton"
		in.Spec.BuiltInAdapter = &v1alpha1.BuiltInAdapter{ServerType: "triton", RuntimeManagementPort: 8001, Env: []corev1.EnvVar{
			{Name: "ADAPTER_PORT", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		}}
	}},
	{"sockets", func(in *resources.RuntimeInputs) {
		in.Spec.GRPCEndpoint, in.Spec.GRPCDataEndpoint = new("unix:/tmp/own/a.sock"), new("unix:///tmp/own/b.sock")
	}},
}

// changes can be combined with each base.
var changes = []variant{
	{"no change", func(*resources.RuntimeInputs) {}},
	{"TLS", func(in *resources.RuntimeInputs) {
		in.Settings.TLS = meshsettings.TLS{SecretName: "serving-tls", ClientAuth: "optional"}
		in.TLS = &resources.TLSInputs{SecretName: "serving-tls", HasCA: true}
	}},
	{"claims", func(in *resources.RuntimeInputs) { in.Claims = []string{"shelf", "with.dots", "models-dir"} }},
	{"neither metrics nor REST", func(in *resources.RuntimeInputs) {
		in.Settings.Metrics.Enabled, in.Settings.RESTProxy.Enabled = false, false
	}},
	{"kube-rbac-proxy", withProxy(capability.Set{})},
	{"the OAuth proxy", withProxy(capability.NewSet(capability.OpenShiftIngress, capability.Route, capability.UserGroup))},
	{"duplicates", func(in *resources.RuntimeInputs) {
		c := &in.Spec.Containers[0]
		c.Env = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B"}, {Name: "A", Value: "2"}}
		c.Ports = []corev1.ContainerPort{{ContainerPort: 7000}, {Name: "b", ContainerPort: 7000}, {Name: "c", ContainerPort: 7000, Protocol: "UDP"}}
		in.Settings.InternalModelMeshEnvVars = []corev1.EnvVar{{Name: "MM_LABELS", Value: "x"}, {Name: "MM_LOCATION", Value: "rack"}}
	}},
	{"most fields of the spec", func(in *resources.RuntimeInputs) {
		c := &in.Spec.Containers[0]
		in.Spec.Volumes = []corev1.Volume{{Name: "own", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		c.VolumeMounts = []corev1.VolumeMount{{Name: "own", MountPath: "/own"}, {Name: modelmesh.ModelsVolume, MountPath: "/models"}}
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1500m"), corev1.ResourceCPU: resource.MustParse("0.5")}
		c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
		in.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		in.Spec.NodeSelector = map[string]string{"a": "b"}
		in.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "a"}, {Name: "a"}}
		in.Spec.Labels = map[string]string{resources.LabelService: "other", "own": "1"}
		in.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n"}},
			}}},
		}}}
	}},
	{"a long name", func(in *resources.RuntimeInputs) {
		in.Name = "a-name-that-is-longer-than-any-label-may-be-and-has.dots-in-it-as-well"
	}},
}

func withProxy(served capability.Set) func(*resources.RuntimeInputs) {
	return func(in *resources.RuntimeInputs) {
		in.Settings.AuthProxy.Mode = meshsettings.AuthProxyAlways
		in.Proxy = authproxy.Decide(in.Settings, in.Namespace, served)
	}
}

// inputs returns the inputs of a base with a change.
func inputs(namespace string, base, change variant) resources.RuntimeInputs {
	in := resources.RuntimeInputs{
		NamespaceInputs: resources.NamespaceInputs{Namespace: namespace, Settings: meshsettings.Default()}, Name: "own", Replicas: new(int32(0)),
		Spec: &v1alpha1.ServingRuntimeSpec{
			MultiModel: new(true), GRPCEndpoint: new("port:9103"), Containers: []corev1.Container{{Name: "server", Image: "example.com/server:7"}},
		},
	}
	base.change(&in)
	change.change(&in)
	Expect(modelmesh.Validate(in.Spec, in.Settings.BuiltInServerTypes)).To(Succeed())
	return in
}
