package resources

import (
	"path"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
)

const (
	// ServerContainer is the name of the container of the server.
	ServerContainer = "catalog"
	// DataContainer is the name of the one that copies the catalog data before the server starts.
	DataContainer = "catalog-data-init"
	// BenchmarkContainer is the name of the one that copies the benchmarks.
	BenchmarkContainer = "benchmark-data-init"

	defaultVolume   = "default-sources"
	dataVolume      = "catalog-data"
	benchmarkVolume = "benchmark-data"
	dataDir         = "/shared-data"
	benchmarkDir    = "/shared-benchmark-data"
	sourcesDir      = "/data"
	labelledDir     = "/data/labeled-sources"
	// LabelledPrefix begins the names of the volumes of labelled sources.
	LabelledPrefix = "labeled-"
	tlsVolume      = "kube-rbac-proxy-tls"
	tlsDir         = "/etc/tls"
	// startupFailures gives a server five minutes to start, since it may wait for a database whose image is still being pulled.
	startupFailureThreshold = 60
	// PodGroup may read the files of Secrets where the platform gives pods no group of their own.
	PodFSGroup = 1000
)

// ServerDeployment is the Deployment of the catalog server.
func ServerDeployment(c *aihubv1alpha1.Catalog, in Inputs) *appsv1ac.DeploymentApplyConfiguration {
	security := resources.PodSecurity()
	if !in.OpenShift {
		security.WithFSGroup(PodFSGroup)
	}
	volumes, mounts := serverVolumes(in)
	container := server(c, in).WithVolumeMounts(mounts...)
	if mode, secret := databaseVerification(c); secret != "" {
		volumes = append(volumes, resources.AddPostgresVerification(container, mode, secret))
	}
	pod := corev1ac.PodSpec().
		WithServiceAccountName(Name).
		WithAutomountServiceAccountToken(HasProxy(c)). // the server itself asks the API server nothing
		WithSecurityContext(security).
		WithInitContainers(
			copyContainer(c, DataContainer, withVersion(in.Images.CatalogData, c.Spec.CatalogDataImage), "cp /app/data/*.yaml "+dataDir+"/", dataVolume, dataDir),
			copyContainer(c, BenchmarkContainer, withVersion(in.Images.BenchmarkData, c.Spec.BenchmarkDataImage), "cp -r /app/benchmarks/* "+benchmarkDir+"/ || true", benchmarkVolume, benchmarkDir),
		).
		WithContainers(container).
		WithVolumes(volumes...)
	if HasProxy(c) {
		sidecar := proxy(c, in)
		pod.WithContainers(sidecar.Container()).WithVolumes(sidecar.Volumes()...)
	}
	resources.ConfigureServerPod(pod, Selector(Name), &c.Spec.Pods)
	d := registry.ServerDeployment(objectMeta(c, Name), c.Spec.Replicas, Selector(Name), pod)
	if in.HuggingFaceKeysHash != "" {
		d.Spec.Template.WithAnnotations(map[string]string{annotationHuggingFaceKeys: in.HuggingFaceKeysHash})
	}
	return d
}

// copying is an init container that hands the content of its image to the server.
func copyContainer(c *aihubv1alpha1.Catalog, name, image, command, volume, dir string) *corev1ac.ContainerApplyConfiguration {
	container := corev1ac.Container().
		WithName(name).
		WithImage(image).
		WithCommand("/bin/sh", "-c", command).
		WithSecurityContext(resources.ContainerSecurity()).
		WithVolumeMounts(mount(volume, dir))
	if given := resourcesSpec(c).Init; given != nil {
		container.WithResources(resources.Requirements(given.Requests, given.Limits))
	}
	return container
}

func server(c *aihubv1alpha1.Catalog, in Inputs) *corev1ac.ContainerApplyConfiguration {
	http := intstr.FromString(PortName)
	return corev1ac.Container().
		WithName(ServerContainer).
		WithImage(in.Images.REST).
		WithCommand("/model-registry", "catalog").
		WithArgs(serverArguments(in)...).
		WithEnv(databaseEnv(c)...).
		WithEnv(proxyEnv(c, in)...).
		WithEnv(huggingFaceEnv(in)...).
		WithPorts(corev1ac.ContainerPort().WithName(PortName).WithContainerPort(serverPort).WithProtocol(corev1.ProtocolTCP)).
		WithStartupProbe(probe(3).WithTCPSocket(corev1ac.TCPSocketAction().WithPort(http)).WithFailureThreshold(startupFailureThreshold)).
		WithLivenessProbe(probe(30).WithTCPSocket(corev1ac.TCPSocketAction().WithPort(http))).
		WithReadinessProbe(probe(3).WithHTTPGet(corev1ac.HTTPGetAction().WithPath("/readyz").WithPort(http))).
		WithResources(serverResources(c)).
		WithSecurityContext(resources.ContainerSecurity())
}

// probe runs every five seconds after a delay in seconds.
func probe(delay int32) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().WithInitialDelaySeconds(delay).WithPeriodSeconds(5).WithTimeoutSeconds(2)
}

// sources is a ConfigMap with sources, the volume that it makes, and where the server finds it.
type sourceVolume struct{ configMap, volume, dir string }

// defaults are the sources that come with the catalog, ofUsers those that users fill, and labelled the further ones.
var defaultSourceVolume = sourceVolume{DefaultSources, defaultVolume, path.Join(sourcesDir, defaultVolume)}

func userSourceVolumes() []sourceVolume {
	all := make([]sourceVolume, 0, len(UserSources))
	for _, s := range UserSources {
		all = append(all, sourceVolume{s.Name, s.volume, path.Join(sourcesDir, s.volume)})
	}
	return all
}

func labelledSourceVolumes(in Inputs) []sourceVolume {
	all := make([]sourceVolume, 0, len(in.Sources))
	for _, name := range in.Sources {
		all = append(all, sourceVolume{name, LabelledPrefix + name, path.Join(labelledDir, name)})
	}
	return all
}

// serverArguments name the sources; of two that say different things the earlier one counts.
func serverArguments(in Inputs) []string {
	arguments := []string{"--listen=0.0.0.0:8080"}
	for _, s := range slices.Concat([]sourceVolume{defaultSourceVolume}, userSourceVolumes(), labelledSourceVolumes(in)) {
		arguments = append(arguments, "--catalogs-path="+path.Join(s.dir, SourcesKey))
	}
	return append(arguments, "--performance-metrics="+benchmarkDir)
}

// serverVolumes are the volumes of the server, and where it mounts them.
func serverVolumes(in Inputs) (volumes []*corev1ac.VolumeApplyConfiguration, mounts []*corev1ac.VolumeMountApplyConfiguration) {
	add := func(all ...sourceVolume) {
		for _, s := range all {
			volumes = append(volumes, corev1ac.Volume().WithName(s.volume).WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(s.configMap)))
			mounts = append(mounts, mount(s.volume, s.dir))
		}
	}
	add(userSourceVolumes()...)
	add(defaultSourceVolume)
	for _, data := range []sourceVolume{{volume: dataVolume, dir: dataDir}, {volume: benchmarkVolume, dir: benchmarkDir}} {
		volumes = append(volumes, corev1ac.Volume().WithName(data.volume).WithEmptyDir(corev1ac.EmptyDirVolumeSource()))
		mounts = append(mounts, mount(data.volume, data.dir))
	}
	add(labelledSourceVolumes(in)...)
	return volumes, mounts
}

// databaseEnv is where its database is.
func databaseEnv(c *aihubv1alpha1.Catalog) []*corev1ac.EnvVarApplyConfiguration {
	if to := DatabaseConnection(c); to != nil {
		env := resources.PostgresConnectionEnv(to.SecretName)
		if to.SSLMode != "" && to.CASecretName == "" {
			env = append(env, corev1ac.EnvVar().WithName("PGSSLMODE").WithValue(to.SSLMode))
		}
		return env
	}
	ext := ptr.Deref(ExternalDatabase(c), aihubv1alpha1.ExternalDatabase{Host: DatabaseName, SecretName: DatabaseName})
	env := []*corev1ac.EnvVarApplyConfiguration{
		corev1ac.EnvVar().WithName("PGHOST").WithValue(ext.Host),
		resources.SecretEnvVar("PGDATABASE", ext.SecretName, KeyDatabase),
		resources.SecretEnvVar("PGUSER", ext.SecretName, KeyUser),
		resources.SecretEnvVar("PGPASSWORD", ext.SecretName, KeyPassword),
	}
	if ext.Port != nil {
		env = append(env, corev1ac.EnvVar().WithName("PGPORT").WithValue(strconv.Itoa(int(*ext.Port))))
	}
	if ext.SSLMode != "" {
		env = append(env, corev1ac.EnvVar().WithName("PGSSLMODE").WithValue(ext.SSLMode))
	}
	return env
}

// verification says how the server verifies its database, and with the CA in which Secret; without a Secret there is none.
func databaseVerification(c *aihubv1alpha1.Catalog) (mode, secret string) {
	if EncryptsDatabase(c) {
		return resources.VerifyFull, DatabaseCertificate
	}
	if to := DatabaseConnection(c); to != nil {
		return to.SSLMode, to.CASecretName
	}
	return "", ""
}

// hubKeyEnv are the keys for Hugging Face. A pod starts without one that is removed at that moment.
func huggingFaceEnv(in Inputs) []*corev1ac.EnvVarApplyConfiguration {
	env := make([]*corev1ac.EnvVarApplyConfiguration, 0, len(in.HuggingFaceKeys))
	for _, k := range in.HuggingFaceKeys {
		variable := resources.SecretEnvVar(k.Variable, k.Secret, k.Key)
		variable.ValueFrom.SecretKeyRef.WithOptional(true)
		env = append(env, variable)
	}
	return env
}

// proxy is the sidecar that lets in only callers that may get the Service.
func proxy(c *aihubv1alpha1.Catalog, in Inputs) rbacproxy.Sidecar {
	file := func(key string) rbacproxy.File {
		return rbacproxy.File{Secret: ServingSecret(c), Key: key, Volume: tlsVolume, Dir: tlsDir}
	}
	return rbacproxy.Sidecar{
		Resources: resourcesSpec(c).KubeRBACProxy, Image: in.Images.KubeRBACProxy, Port: proxyPort, UpstreamPort: serverPort, ConfigMap: ProxyConfig,
		Certificate: file("tls.crt"), Key: file("tls.key"), TLS: in.TLS,
	}
}

// asked are the resources of the spec.
func resourcesSpec(c *aihubv1alpha1.Catalog) aihubv1alpha1.CatalogResources {
	return ptr.Deref(c.Spec.Resources, aihubv1alpha1.CatalogResources{})
}

// serverResources are those of the spec as they stand, even none.
func serverResources(c *aihubv1alpha1.Catalog) *corev1ac.ResourceRequirementsApplyConfiguration {
	memory := resource.MustParse("256Mi")
	return resources.RequirementsOrDefault(resourcesSpec(c).Catalog, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: memory},
		corev1.ResourceList{corev1.ResourceMemory: memory})
}

func mount(volume, dir string) *corev1ac.VolumeMountApplyConfiguration {
	return corev1ac.VolumeMount().WithName(volume).WithMountPath(dir)
}
