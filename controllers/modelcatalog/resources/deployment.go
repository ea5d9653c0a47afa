package resources

import (
	"path"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
)

const (
	serverContainer = "catalog"
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
	startupFailures = 60
	// PodGroup may read the files of Secrets where the platform gives pods no group of their own.
	PodGroup = 1000
)

// ServerDeployment is the Deployment of the catalog server.
func ServerDeployment(c *aihubv1alpha1.Catalog, in Inputs) *appsv1ac.DeploymentApplyConfiguration {
	security := resources.PodSecurity()
	if !in.OpenShift {
		security.WithFSGroup(PodGroup)
	}
	container, volumes := server(c, in), serverVolumes(in)
	if mode, secret := verification(c); secret != "" {
		volumes = append(volumes, resources.VerifyPostgres(container, mode, secret))
	}
	pod := corev1ac.PodSpec().
		WithServiceAccountName(Name).
		WithAutomountServiceAccountToken(Proxied(c)). // the server itself asks the API server nothing
		WithSecurityContext(security).
		WithInitContainers(
			copying("catalog-data-init", inVersion(in.Images.CatalogData, c.Spec.CatalogDataImage), "cp /app/data/*.yaml "+dataDir+"/", dataVolume, dataDir),
			copying("benchmark-data-init", inVersion(in.Images.BenchmarkData, c.Spec.BenchmarkDataImage), "cp -r /app/benchmarks/* "+benchmarkDir+"/ || true", benchmarkVolume, benchmarkDir),
		).
		WithContainers(container).
		WithVolumes(volumes...)
	if Proxied(c) {
		sidecar := proxy(c, in)
		pod.WithContainers(sidecar.Container()).WithVolumes(sidecar.Volumes()...)
	}
	resources.PlaceServer(pod, Selector(Name), &c.Spec.Pods)
	annotations := map[string]string{"openshift.io/required-scc": "restricted-v2"}
	if in.HubKeysHash != "" {
		annotations[annotationHubKeys] = in.HubKeysHash
	}
	return appsv1ac.Deployment(Name, c.Namespace).WithLabels(Labels(Name)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(resources.OrOne(c.Spec.Replicas)).
			WithRevisionHistoryLimit(0).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(Selector(Name))).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(Selector(Name)).
				WithAnnotations(annotations).
				WithSpec(pod)))
}

// copying is an init container that hands the content of its image to the server.
func copying(name, image, command, volume, dir string) *corev1ac.ContainerApplyConfiguration {
	return corev1ac.Container().
		WithName(name).
		WithImage(image).
		WithCommand("/bin/sh", "-c", command).
		WithSecurityContext(resources.ContainerSecurity()).
		WithVolumeMounts(mount(volume, dir))
}

func server(c *aihubv1alpha1.Catalog, in Inputs) *corev1ac.ContainerApplyConfiguration {
	http := intstr.FromString(PortName)
	return corev1ac.Container().
		WithName(serverContainer).
		WithImage(in.Images.REST).
		WithCommand("/model-registry", "catalog").
		WithArgs(serverArguments(in)...).
		WithEnv(databaseEnv(c)...).
		WithEnv(proxyEnv(c, in)...).
		WithEnv(hubKeyEnv(in)...).
		WithPorts(corev1ac.ContainerPort().WithName(PortName).WithContainerPort(serverPort).WithProtocol(corev1.ProtocolTCP)).
		WithStartupProbe(probe(3).WithTCPSocket(corev1ac.TCPSocketAction().WithPort(http)).WithFailureThreshold(startupFailures)).
		WithLivenessProbe(probe(30).WithTCPSocket(corev1ac.TCPSocketAction().WithPort(http))).
		WithReadinessProbe(probe(3).WithHTTPGet(corev1ac.HTTPGetAction().WithPath("/readyz").WithPort(http))).
		WithResources(serverResources(c)).
		WithSecurityContext(resources.ContainerSecurity()).
		WithVolumeMounts(serverMounts(in)...)
}

// probe runs every five seconds after a delay in seconds.
func probe(delay int32) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().WithInitialDelaySeconds(delay).WithPeriodSeconds(5).WithTimeoutSeconds(2)
}

// serverArguments name the sources; of two that say different things the earlier one counts.
func serverArguments(in Inputs) []string {
	source := func(elements ...string) string {
		return "--catalogs-path=" + path.Join(append(elements, SourcesKey)...)
	}
	arguments := []string{
		"--listen=0.0.0.0:8080",
		source(sourcesDir, defaultVolume),
	}
	for _, s := range UserSources {
		arguments = append(arguments, source(sourcesDir, s.volume))
	}
	for _, name := range in.Sources {
		arguments = append(arguments, source(labelledDir, name))
	}
	return append(arguments, "--performance-metrics="+benchmarkDir)
}

func serverMounts(in Inputs) []*corev1ac.VolumeMountApplyConfiguration {
	var mounts []*corev1ac.VolumeMountApplyConfiguration
	for _, s := range UserSources {
		mounts = append(mounts, mount(s.volume, path.Join(sourcesDir, s.volume)))
	}
	mounts = append(mounts, mount(defaultVolume, path.Join(sourcesDir, defaultVolume)), mount(dataVolume, dataDir), mount(benchmarkVolume, benchmarkDir))
	for _, name := range in.Sources {
		mounts = append(mounts, mount(LabelledPrefix+name, path.Join(labelledDir, name)))
	}
	return mounts
}

func serverVolumes(in Inputs) []*corev1ac.VolumeApplyConfiguration {
	var volumes []*corev1ac.VolumeApplyConfiguration
	add := func(volume, configMap string) {
		volumes = append(volumes, corev1ac.Volume().WithName(volume).
			WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(configMap)))
	}
	for _, s := range UserSources {
		add(s.volume, s.Name)
	}
	add(defaultVolume, DefaultSources)
	for _, name := range []string{dataVolume, benchmarkVolume} {
		volumes = append(volumes, corev1ac.Volume().WithName(name).WithEmptyDir(corev1ac.EmptyDirVolumeSource()))
	}
	for _, name := range in.Sources {
		add(LabelledPrefix+name, name)
	}
	return volumes
}

// databaseEnv is where its database is.
func databaseEnv(c *aihubv1alpha1.Catalog) []*corev1ac.EnvVarApplyConfiguration {
	if to := Connection(c); to != nil {
		env := resources.ConnectionEnv(to.SecretName)
		if to.SSLMode != "" && to.CASecretName == "" {
			env = append(env, corev1ac.EnvVar().WithName("PGSSLMODE").WithValue(to.SSLMode))
		}
		return env
	}
	host, secret := DatabaseName, DatabaseName
	ext := External(c)
	if ext != nil {
		host, secret = ext.Host, ext.SecretName
	}
	env := []*corev1ac.EnvVarApplyConfiguration{
		corev1ac.EnvVar().WithName("PGHOST").WithValue(host),
		resources.FromSecret("PGDATABASE", secret, KeyDatabase),
		resources.FromSecret("PGUSER", secret, KeyUser),
		resources.FromSecret("PGPASSWORD", secret, KeyPassword),
	}
	if ext != nil && ext.Port != nil {
		env = append(env, corev1ac.EnvVar().WithName("PGPORT").WithValue(strconv.Itoa(int(*ext.Port))))
	}
	if ext != nil && ext.SSLMode != "" {
		env = append(env, corev1ac.EnvVar().WithName("PGSSLMODE").WithValue(ext.SSLMode))
	}
	return env
}

// verification says how the server verifies its database, and with the CA in which Secret; without a Secret there is none.
func verification(c *aihubv1alpha1.Catalog) (mode, secret string) {
	if EncryptsDatabase(c) {
		return resources.VerifyFull, DatabaseCertificate
	}
	if to := Connection(c); to != nil {
		return to.SSLMode, to.CASecretName
	}
	return "", ""
}

// hubKeyEnv are the keys for Hugging Face. A pod starts without one that is removed at that moment.
func hubKeyEnv(in Inputs) []*corev1ac.EnvVarApplyConfiguration {
	env := make([]*corev1ac.EnvVarApplyConfiguration, 0, len(in.HubKeys))
	for _, k := range in.HubKeys {
		variable := resources.FromSecret(k.Variable, k.Secret, k.Key)
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
		Image: in.Images.KubeRBACProxy, Port: proxyPort, UpstreamPort: serverPort, ConfigMap: ProxyConfig,
		Certificate: file("tls.crt"), Key: file("tls.key"),
	}
}

// serverResources are those of the spec as they stand, even none.
func serverResources(c *aihubv1alpha1.Catalog) *corev1ac.ResourceRequirementsApplyConfiguration {
	if r := c.Spec.Resources; r != nil && r.Catalog != nil {
		return resources.Requirements(r.Catalog.Requests, r.Catalog.Limits)
	}
	return resources.Requirements(amounts("100m", "256Mi"), corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")})
}

func amounts(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

func mount(volume, dir string) *corev1ac.VolumeMountApplyConfiguration {
	return corev1ac.VolumeMount().WithName(volume).WithMountPath(dir)
}
