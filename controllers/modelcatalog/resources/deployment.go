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
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
)

const (
	// ServerContainer is the name of the container of the server.
	ServerContainer = "catalog"
	// DataContainer is the name of the init container that copies the catalog data.
	DataContainer = "catalog-data-init"
	// BenchmarkContainer is the name of the init container that copies the benchmarks.
	BenchmarkContainer = "benchmark-data-init"

	defaultVolume   = "default-sources"
	dataVolume      = "catalog-data"
	benchmarkVolume = "benchmark-data"
	dataDir         = "/shared-data"
	benchmarkDir    = "/shared-benchmark-data"
	sourcesDir      = "/data"
	labelledDir     = "/data/labeled-sources"
	// LabelledPrefix is the name prefix of the volumes of ConfigMaps with SourceLabel.
	LabelledPrefix = "labeled-"
	tlsVolume      = "kube-rbac-proxy-tls"
	tlsDir         = "/etc/tls"
	// startupFailureThreshold gives a server five minutes to start, because the image of its database may still be pulled.
	startupFailureThreshold = 60
	// PodFSGroup is the group that may read the files of Secrets, unless OpenShift assigns one.
	PodFSGroup = 1000
)

// ServerDeployment returns the Deployment of the catalog server.
func ServerDeployment(c *aihubv1alpha1.Catalog, in Inputs) *appsv1ac.DeploymentApplyConfiguration {
	security := resources.PodSecurity()
	if !in.IsOpenShift() {
		security.WithFSGroup(PodFSGroup)
	}
	volumes, mounts := serverVolumes(in)
	container := serverContainer(c, in).WithVolumeMounts(mounts...)
	if mode, secret := databaseVerification(c); secret != "" {
		volumes = append(volumes, resources.AddPostgresVerification(container, mode, secret))
	}
	pod := corev1ac.PodSpec().
		WithSecurityContext(security).
		WithInitContainers(
			copyContainer(c, DataContainer, withVersion(in.Images.CatalogData, c.Spec.CatalogDataImage), "cp /app/data/*.yaml "+dataDir+"/", dataVolume, dataDir),
			copyContainer(c, BenchmarkContainer, withVersion(in.Images.BenchmarkData, c.Spec.BenchmarkDataImage), "cp -r /app/benchmarks/* "+benchmarkDir+"/ || true", benchmarkVolume, benchmarkDir),
		).
		WithContainers(container).
		WithVolumes(volumes...)
	var sidecar *rbacproxy.Sidecar
	if HasAuthProxy(c) {
		sidecar = proxySidecar(c, in)
	}
	d := serverDescription(c).Deployment(c.Spec.Replicas, pod, sidecar, &c.Spec.Pods)
	if in.HuggingFaceAPIKeysHash != "" {
		d.Spec.Template.WithAnnotations(map[string]string{annotationHuggingFaceKeys: in.HuggingFaceAPIKeysHash})
	}
	return d
}

// copyContainer returns an init container that copies the content of its image into a volume of the server.
func copyContainer(c *aihubv1alpha1.Catalog, name, image, command, volume, dir string) *corev1ac.ContainerApplyConfiguration {
	container := corev1ac.Container().
		WithName(name).
		WithImage(image).
		WithCommand("/bin/sh", "-c", command).
		WithSecurityContext(resources.ContainerSecurity()).
		WithVolumeMounts(resources.Mount(volume, dir))
	if requested := resourcesSpec(c).Init; requested != nil {
		container.WithResources(resources.Requirements(requested.Requests, requested.Limits))
	}
	return container
}

func serverContainer(c *aihubv1alpha1.Catalog, in Inputs) *corev1ac.ContainerApplyConfiguration {
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

// probe returns a probe that runs every five seconds after a delay in seconds.
func probe(delay int32) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().WithInitialDelaySeconds(delay).WithPeriodSeconds(5).WithTimeoutSeconds(2)
}

// sourceVolume is a ConfigMap with sources, its volume and the directory where it is mounted.
type sourceVolume struct{ configMap, volume, dir string }

// defaultSourceVolume mounts the default sources.
var defaultSourceVolume = sourceVolume{DefaultSources, defaultVolume, path.Join(sourcesDir, defaultVolume)}

func userSourceVolumes() []sourceVolume {
	all := make([]sourceVolume, 0, len(UserSources))
	for _, s := range UserSources {
		all = append(all, sourceVolume{s.Name, s.volume, path.Join(sourcesDir, s.volume)})
	}
	return all
}

func labelledSourceVolumes(in Inputs) []sourceVolume {
	all := make([]sourceVolume, 0, len(in.SourceConfigMaps))
	for _, name := range in.SourceConfigMaps {
		all = append(all, sourceVolume{name, LabelledPrefix + name, path.Join(labelledDir, name)})
	}
	return all
}

// serverArguments returns the flags of the server. The order of the sources determines their precedence.
func serverArguments(in Inputs) []string {
	arguments := []string{"--listen=0.0.0.0:8080"}
	for _, s := range slices.Concat([]sourceVolume{defaultSourceVolume}, userSourceVolumes(), labelledSourceVolumes(in)) {
		arguments = append(arguments, "--catalogs-path="+path.Join(s.dir, SourcesKey))
	}
	return append(arguments, "--performance-metrics="+benchmarkDir)
}

func serverVolumes(in Inputs) (volumes []*corev1ac.VolumeApplyConfiguration, mounts []*corev1ac.VolumeMountApplyConfiguration) {
	add := func(all ...sourceVolume) {
		for _, s := range all {
			volumes = append(volumes, corev1ac.Volume().WithName(s.volume).WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(s.configMap)))
			mounts = append(mounts, resources.Mount(s.volume, s.dir))
		}
	}
	add(userSourceVolumes()...)
	add(defaultSourceVolume)
	for _, data := range []struct{ volume, dir string }{{dataVolume, dataDir}, {benchmarkVolume, benchmarkDir}} {
		volumes = append(volumes, corev1ac.Volume().WithName(data.volume).WithEmptyDir(corev1ac.EmptyDirVolumeSource()))
		mounts = append(mounts, resources.Mount(data.volume, data.dir))
	}
	add(labelledSourceVolumes(in)...)
	return volumes, mounts
}

// databaseEnv returns the libpq environment variables of the connection to the database.
func databaseEnv(c *aihubv1alpha1.Catalog) []*corev1ac.EnvVarApplyConfiguration {
	if connection := DatabaseConnection(c); connection != nil {
		env := resources.PostgresConnectionEnv(connection.SecretName)
		if connection.SSLMode != "" && connection.CASecretName == "" {
			env = append(env, corev1ac.EnvVar().WithName("PGSSLMODE").WithValue(connection.SSLMode))
		}
		return env
	}
	server := ptr.Deref(ExternalDatabase(c), aihubv1alpha1.ExternalDatabase{Host: DatabaseName, SecretName: DatabaseName})
	env := []*corev1ac.EnvVarApplyConfiguration{
		corev1ac.EnvVar().WithName("PGHOST").WithValue(server.Host),
		resources.SecretEnvVar("PGDATABASE", server.SecretName, KeyDatabase),
		resources.SecretEnvVar("PGUSER", server.SecretName, KeyUser),
		resources.SecretEnvVar("PGPASSWORD", server.SecretName, KeyPassword),
	}
	if server.Port != nil {
		env = append(env, corev1ac.EnvVar().WithName("PGPORT").WithValue(strconv.Itoa(int(*server.Port))))
	}
	if server.SSLMode != "" {
		env = append(env, corev1ac.EnvVar().WithName("PGSSLMODE").WithValue(server.SSLMode))
	}
	return env
}

// databaseVerification returns the sslmode and the Secret with the CA of the database. The Secret is "" if there is none to mount.
func databaseVerification(c *aihubv1alpha1.Catalog) (mode, secret string) {
	if EncryptsDatabase(c) {
		return resources.VerifyFull, DatabaseCertificate
	}
	if connection := DatabaseConnection(c); connection != nil {
		return connection.SSLMode, connection.CASecretName
	}
	return "", ""
}

// huggingFaceEnv returns the environment variables with API keys for Hugging Face. They are optional, because pods must start even if a
// Secret was deleted.
func huggingFaceEnv(in Inputs) []*corev1ac.EnvVarApplyConfiguration {
	env := make([]*corev1ac.EnvVarApplyConfiguration, 0, len(in.HuggingFaceAPIKeys))
	for _, k := range in.HuggingFaceAPIKeys {
		variable := resources.SecretEnvVar(k.Variable, k.Secret, k.SecretKey)
		variable.ValueFrom.SecretKeyRef.WithOptional(true)
		env = append(env, variable)
	}
	return env
}

// proxySidecar returns the authenticating proxy. It accepts only clients that may get the Service.
func proxySidecar(c *aihubv1alpha1.Catalog, in Inputs) *rbacproxy.Sidecar {
	file := func(key string) rbacproxy.File {
		return rbacproxy.File{Secret: ServingSecret(c), Key: key, Volume: tlsVolume, Dir: tlsDir}
	}
	return &rbacproxy.Sidecar{
		Resources: resourcesSpec(c).KubeRBACProxy, Image: in.Images.KubeRBACProxy, Port: proxyPort, UpstreamPort: serverPort, ConfigMap: ProxyConfig,
		Certificate: file("tls.crt"), Key: file("tls.key"), TLS: in.TLS,
	}
}

func resourcesSpec(c *aihubv1alpha1.Catalog) aihubv1alpha1.CatalogResources {
	return ptr.Deref(c.Spec.Resources, aihubv1alpha1.CatalogResources{})
}

// serverResources returns the resources of the spec, even if empty, or the defaults.
func serverResources(c *aihubv1alpha1.Catalog) *corev1ac.ResourceRequirementsApplyConfiguration {
	memory := resource.MustParse("256Mi")
	return resources.RequirementsOrDefault(resourcesSpec(c).Catalog, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: memory},
		corev1.ResourceList{corev1.ResourceMemory: memory})
}
