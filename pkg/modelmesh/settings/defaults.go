package settings

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Names that installations rely on.
const (
	// DefaultServiceName is the name of the Service where no other is named.
	DefaultServiceName = "modelmesh-serving"
	// DefaultEtcdSecret is the name of the Secret that says where etcd is.
	DefaultEtcdSecret = "model-serving-etcd"
	// DefaultStorageSecret is the name of the Secret with the storage entries.
	DefaultStorageSecret = "storage-config"
)

// Image of the OAuth proxy that the Open Data Hub put into runtime pods.
const oauthProxyName, oauthProxyDigest = "registry.redhat.io/openshift4/ose-oauth-proxy-rhel9",
	"sha256:d3056b35d9a205b9f2c48d924f199c5ac23904eb18d526e4bff229e7c7181415"

// Default returns the settings that hold without any document: those of the ConfigMap of defaults that the original
// installs.
func Default() Settings {
	s := builtIn()
	s.HeadlessService, s.RESTProxy.Enabled, s.Metrics.Enabled = true, true, true
	return s
}

// builtIn is what a document of defaults is read over. The original's program had three switches off that its shipped document
// turns on: a document that leaves them out means off. What that program had no value for has the shipped one.
func builtIn() Settings {
	return Settings{
		ServiceName: DefaultServiceName, ServicePort: 8033, PodsPerRuntime: 2, GRPCMaxMessageSizeBytes: 16 << 20,
		ModelMeshImage:     Image{Name: "kserve/modelmesh", Tag: "latest"},
		ModelMeshResources: resources("300m", "448Mi", "3", "448Mi"),
		RESTProxy: RESTProxy{Port: 8008, Image: Image{Name: "kserve/rest-proxy", Tag: "latest"},
			Resources: resources("50m", "96Mi", "1", "512Mi")},
		StorageHelper: StorageHelper{Image: Image{Name: "kserve/modelmesh-runtime-adapter", Tag: "latest"},
			Command: []string{"/opt/app/puller"}, Resources: resources("50m", "96Mi", "2", "512Mi")},
		StorageSecretName: DefaultStorageSecret, EtcdSecretName: DefaultEtcdSecret,
		Metrics:              Metrics{Port: 2112, Scheme: "https"},
		ScaleToZero:          ScaleToZero{Enabled: true, GracePeriod: time.Minute},
		BuiltInServerTypes:   []string{"mlserver", "triton", "ovms", "torchserve"},
		RuntimeArchitectures: []string{"amd64", "arm64", "s390x"},
		AuthProxy: AuthProxy{Mode: AuthProxyAuto, Image: Image{Name: oauthProxyName, Digest: oauthProxyDigest},
			RBACImage: Image{Name: "quay.io/brancz/kube-rbac-proxy", Tag: "v0.19.1"}, Resources: resources("100m", "256Mi", "100m", "256Mi")},
		NetworkPolicy: true,
	}
}

func resources(cpu, memory, maxCPU, maxMemory string) corev1.ResourceRequirements {
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	return corev1.ResourceRequirements{Requests: list(cpu, memory), Limits: list(maxCPU, maxMemory)}
}
