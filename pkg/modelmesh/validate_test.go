package modelmesh

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

var serverTypes = []string{"mlserver", "triton", "ovms", "torchserve"}

// newRuntime returns a runtime that is valid without the changes.
func newRuntime(change ...func(*v1alpha1.ServingRuntimeSpec)) *v1alpha1.ServingRuntimeSpec {
	spec := &v1alpha1.ServingRuntimeSpec{
		MultiModel: new(true), GRPCEndpoint: new("port:9103"), Containers: []corev1.Container{{Name: "server", Image: "server:1"}},
	}
	for _, f := range change {
		f(spec)
	}
	return spec
}

func inContainer(change func(*corev1.Container)) func(*v1alpha1.ServingRuntimeSpec) {
	return func(s *v1alpha1.ServingRuntimeSpec) { change(&s.Containers[0]) }
}

func named(name string) func(*v1alpha1.ServingRuntimeSpec) {
	return inContainer(func(c *corev1.Container) { c.Name = name })
}

func port(name string, number int32) func(*v1alpha1.ServingRuntimeSpec) {
	return inContainer(func(c *corev1.Container) {
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: name, ContainerPort: number})
	})
}

func mount(name string) func(*v1alpha1.ServingRuntimeSpec) {
	return inContainer(func(c *corev1.Container) {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/own"})
	})
}

func volume(name string) func(*v1alpha1.ServingRuntimeSpec) {
	return func(s *v1alpha1.ServingRuntimeSpec) { s.Volumes = append(s.Volumes, corev1.Volume{Name: name}) }
}

func withAdapter(server string) func(*v1alpha1.ServingRuntimeSpec) {
	return func(s *v1alpha1.ServingRuntimeSpec) { s.BuiltInAdapter = &v1alpha1.BuiltInAdapter{ServerType: server} }
}

// [modelmesh-29]
func TestValidateAccepts(t *testing.T) {
	for name, spec := range map[string]*v1alpha1.ServingRuntimeSpec{
		"added capabilities": newRuntime(inContainer(func(c *corev1.Container) {
			c.SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_NICE"}}}
		})),
		"additional port":                newRuntime(port("own", 54321)),
		"additional volume":              newRuntime(volume("own"), mount("own")),
		"mount of the models volume":     newRuntime(mount(ModelsVolume)),
		"adapter":                        newRuntime(withAdapter("mlserver"), named("mlserver")),
		"[M1] adapter without endpoint":  newRuntime(withAdapter("mlserver"), named("mlserver"), func(s *v1alpha1.ServingRuntimeSpec) { s.GRPCEndpoint = nil }),
		"other probes":                   newRuntime(inContainer(func(c *corev1.Container) { c.LivenessProbe, c.StartupProbe = &corev1.Probe{}, &corev1.Probe{} })),
		"ports next to reserved ports":   newRuntime(port("a", 11880), port("b", 11900), port("c", 8081)),
		"maximum number of replicas":     newRuntime(func(s *v1alpha1.ServingRuntimeSpec) { s.Replicas = new(int64(65535)) }),
		"names used with other settings": newRuntime(volume("tls-certs"), port("https", 8443)),
		"names that contain mm-":         newRuntime(named("a-mm-b"), volume("my-mm-volume")),
		"container in addition to the server": newRuntime(withAdapter("triton"), named("triton"), func(s *v1alpha1.ServingRuntimeSpec) {
			s.Containers = append(s.Containers, corev1.Container{Name: "own"})
		}),
	} {
		t.Run(name, func(t *testing.T) {
			if err := Validate(spec, serverTypes); err != nil {
				t.Error(err)
			}
		})
	}
}

// [modelmesh-30] Messages about rules of the legacy controller begin with its text.
func TestValidateErrors(t *testing.T) {
	in := func(problem string) string { return "container spec for server is invalid: " + problem }
	for name, c := range map[string]struct {
		spec *v1alpha1.ServingRuntimeSpec
		want string
	}{
		"container mm":           {newRuntime(named("mm")), "container spec for mm is invalid: container name mm is reserved for internal use: choose another"},
		"container puller":       {newRuntime(named("puller")), "container spec for puller is invalid: container name puller is reserved for internal use: choose another"},
		"container rest-proxy":   {newRuntime(named("rest-proxy")), "container spec for rest-proxy is invalid: container name rest-proxy is reserved for internal use: choose another"},
		"container prefix":       {newRuntime(named("mm-own")), `container spec for mm-own is invalid: container name cannot start with "mm-", that is reserved for internal use: choose another name`},
		"lifecycle":              {newRuntime(inContainer(func(c *corev1.Container) { c.Lifecycle = &corev1.Lifecycle{} })), in("ReadinessProbe and Lifecycle are managed by modelmesh and cannot be set: remove them")},
		"readiness":              {newRuntime(inContainer(func(c *corev1.Container) { c.ReadinessProbe = &corev1.Probe{} })), in("ReadinessProbe and Lifecycle are managed by modelmesh and cannot be set: remove them")},
		"port grpc":              {newRuntime(port("grpc", 1)), in("port name grpc is reserved for internal use: choose another")},
		"port http":              {newRuntime(port("http", 1)), in("port name http is reserved for internal use: choose another")},
		"port prometheus":        {newRuntime(port("prometheus", 1)), in("port name prometheus is reserved for internal use: choose another")},
		"port prefix":            {newRuntime(port("mm-own", 1)), in("port name mm-own is reserved for internal use: choose another")},
		"port 8080":              {newRuntime(port("own", 8080)), in("Port 8080 is reserved for internal use: choose another")},
		"port 8090":              {newRuntime(port("own", 8090)), in("Port 8090 is reserved for internal use: choose another")},
		"port 11888":             {newRuntime(port("own", 11888)), in("Port range [11881-11899] is reserved for internal use: choose another port")},
		"mount":                  {newRuntime(mount("tc-config")), in("volume tc-config is reserved for internal use: choose another name")},
		"mount prefix":           {newRuntime(mount("mm-own")), in("volume mm-own is reserved for internal use: choose another name")},
		"volume":                 {newRuntime(volume("models-dir")), "volume models-dir is reserved for internal use: choose another name"},
		"volume of etcd":         {newRuntime(volume("etcd-config")), "volume etcd-config is reserved for internal use: choose another name"},
		"volume prefix":          {newRuntime(volume("mm-own")), "volume mm-own is reserved for internal use: choose another name"},
		"no server container":    {newRuntime(withAdapter("triton")), "must include runtime container with name triton"},
		"unknown type":           {newRuntime(withAdapter("other"), named("other")), "unrecognized built-in runtime server type other: use one of mlserver, triton, ovms, torchserve"},
		"[M1] no endpoint":       {newRuntime(func(s *v1alpha1.ServingRuntimeSpec) { s.GRPCEndpoint = nil }), "spec.grpcEndpoint is missing: set the address at which the server loads models, as port:<number> or unix:<absolute path>"},
		"[M43] invalid address":  {newRuntime(func(s *v1alpha1.ServingRuntimeSpec) { s.GRPCEndpoint = new("8085") }), `spec.grpcEndpoint "8085" is neither port:<number> nor unix:<absolute path>: write one of them`},
		"[M6] replicas":          {newRuntime(func(s *v1alpha1.ServingRuntimeSpec) { s.Replicas = new(int64(70000)) }), "spec.replicas 70000 must be between 0 and 65535"},
		"[M6] negative replicas": {newRuntime(func(s *v1alpha1.ServingRuntimeSpec) { s.Replicas = new(int64(-1)) }), "spec.replicas -1 must be between 0 and 65535"},
		"several errors": {newRuntime(withAdapter("other"), port("own", 8089), volume("tc-config"), mount("storage-config")),
			"unrecognized built-in runtime server type other: use one of mlserver, triton, ovms, torchserve; must include runtime container with name other; " +
				in("volume storage-config is reserved for internal use: choose another name") + "; " + in("Port 8089 is reserved for internal use: choose another") +
				"; volume tc-config is reserved for internal use: choose another name"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Validate(c.spec, serverTypes)
			if err == nil {
				t.Fatal("the runtime was not rejected")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Warnings report errors, fields without effect, and conflicts with adapters or, under other settings, with ModelMesh. [M41]
func TestWarnings(t *testing.T) {
	for name, c := range map[string]struct {
		spec *v1alpha1.ServingRuntimeSpec
		want []string
	}{
		"valid runtime":   {newRuntime(), nil},
		"oauth-proxy":     {newRuntime(named("oauth-proxy")), []string{"spec.containers[oauth-proxy]: ModelMesh has a container of that name: choose another"}},
		"kube-rbac-proxy": {newRuntime(named("kube-rbac-proxy")), []string{"spec.containers[kube-rbac-proxy]: ModelMesh has a container of that name: choose another"}},
		"ovms-adapter":    {newRuntime(named("ovms-adapter")), []string{"spec.containers[ovms-adapter]: ModelMesh has a container of that name: choose another"}},
		"volumes": {newRuntime(volume("tls-certs"), volume("proxy-tls"), volume("kube-rbac-proxy-config")), []string{
			"spec.volumes[tls-certs]: ModelMesh has a volume of that name: choose another", "spec.volumes[proxy-tls]: ModelMesh has a volume of that name: choose another",
			"spec.volumes[kube-rbac-proxy-config]: ModelMesh has a volume of that name: choose another"}},
		"ports": {newRuntime(port("https", 8033), port("own", 2112)), []string{
			"spec.containers[server]: ModelMesh has a port named https: choose another name", "spec.containers[server]: ModelMesh listens on port 8033: choose another",
			"spec.containers[server]: ModelMesh listens on port 2112: choose another"}},
		"fields that only KServe reads": {&v1alpha1.ServingRuntimeSpec{
			GRPCEndpoint: newRuntime().GRPCEndpoint, Containers: newRuntime().Containers, SupportedModelFormats: newRuntime().SupportedModelFormats, Ignored: []string{"workerSpec"},
		}, []string{"spec.workerSpec has no effect on pods of ModelMesh: remove it"}},
		"reserved container name": {newRuntime(named("mm")), []string{"no pods are created: container spec for mm is invalid: container name mm is reserved for internal use: choose another"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Warnings(c.spec, serverTypes)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	for _, number := range []int32{8033, 8008, 2112, 8443, 8444, 8086} {
		if got := Warnings(newRuntime(port("own", number)), serverTypes); len(got) != 1 || !strings.Contains(got[0], "listens on port") {
			t.Errorf("port %d: got warnings %q, want one", number, got)
		}
	}
}
