package resources

import (
	_ "embed"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

const (
	systemBundle   = "/etc/pki/tls/certs/ca-bundle.crt"
	platformCAPath = "/etc/pki/tls/certs/platform"
	customCAPath   = "/etc/pki/tls/certs/custom"
	serviceCAPath  = "/etc/pki/tls/certs/service"
	combinedPath   = "/etc/pki/tls/certs/combined"
	combinedBundle = combinedPath + "/ca-bundle.crt"
	combinedVolume = "combined-ca-bundle"
)

// bundleFunctions is the part that both programs share. The new bundle is made
// beside the old one and renamed over it, so that readers never see half of it.
// Missing sources are skipped: the ConfigMaps are mounted as optional.
//
//go:embed ca_bundle.sh
var bundleFunctions string

// bundleLoop builds the bundle again whenever a source has changed, and once at
// its start: that may have happened since the init container ran.
//
//go:embed ca_bundle_watch.sh
var bundleLoop string

var combineProgram, watchProgram = bundleFunctions + "combine\n", bundleFunctions + bundleLoop

// caSource is a ConfigMap with certificate authorities, or a Secret of which
// caKey is one, and where it is mounted.
type caSource struct{ configMap, secret, path string }

// caKey is where a Secret of type kubernetes.io/tls holds the authority.
const caKey = "ca.crt"

// volume mounts the source where it exists. Of a Secret the authority alone is
// mounted: the key beside it is not for clients.
func (s caSource) volume(name string) *corev1ac.VolumeApplyConfiguration {
	if s.secret != "" {
		return corev1ac.Volume().WithName(name).WithSecret(corev1ac.SecretVolumeSource().WithSecretName(s.secret).
			WithOptional(true).WithItems(corev1ac.KeyToPath().WithKey(caKey).WithPath(caKey)))
	}
	return corev1ac.Volume().WithName(name).WithConfigMap(
		corev1ac.ConfigMapVolumeSource().WithName(s.configMap).WithOptional(true))
}

func caSources(m *mlflowv1.MLflow, in Inputs) []caSource {
	var sources []caSource
	if in.PlatformCABundle {
		sources = append(sources, caSource{configMap: PlatformCAName, path: platformCAPath})
	}
	if ref := m.Spec.CABundleConfigMap; ref != nil && ref.Name != "" {
		sources = append(sources, caSource{configMap: ref.Name, path: customCAPath})
	}
	return sources
}

// withCABundle joins the authorities of the image and of the sources into one
// file, and makes all clients in a pod trust it. It adds nothing when there are
// no sources. In a pod that lives long, a program beside the main container keeps
// the file up to date.
func withCABundle(m *mlflowv1.MLflow, in Inputs, sources []caSource, live bool) part {
	if len(sources) == 0 {
		return part{}
	}
	var p part
	for i, source := range sources {
		p.volumes = append(p.volumes, source.volume(caVolume(i)))
	}
	p.volumes = append(p.volumes, corev1ac.Volume().WithName(combinedVolume).WithEmptyDir(corev1ac.EmptyDirVolumeSource()))
	p.mounts = append(p.mounts, mount(combinedVolume, combinedPath).WithReadOnly(true))
	p.env = caBundleEnv(m, in)
	p.initContainers = append(p.initContainers,
		bundleContainer(m, in, sources, "combine-ca-bundles", combineProgram, requirements("10m", "16Mi", "100m", "64Mi")))
	if live {
		watch := bundleContainer(m, in, sources, "ca-bundle-watcher", watchProgram, requirements("5m", "8Mi", "50m", "32Mi"))
		watch.Env = append([]envVar{value("CA_BUNDLE_WATCH_INTERVAL", "30")}, watch.Env...)
		p.sidecars = append(p.sidecars, watch)
	}
	return p
}

func bundleContainer(m *mlflowv1.MLflow, in Inputs, sources []caSource, name, program string,
	needed *corev1ac.ResourceRequirementsApplyConfiguration,
) *corev1ac.ContainerApplyConfiguration {
	container := imageContainer(m, in, name).
		WithCommand("/bin/sh", "-c", program).
		WithVolumeMounts(mount("tmp", tmpPath), mount(combinedVolume, combinedPath)).
		WithResources(needed)
	var paths []string
	for i, source := range sources {
		paths = append(paths, source.path)
		container.WithVolumeMounts(mount(caVolume(i), source.path).WithReadOnly(true))
	}
	container.Env = []envVar{
		value("CA_BUNDLE_FILE_PATHS", systemBundle),
		value("CA_BUNDLE_MOUNT_PATHS", strings.Join(paths, " ")),
		value("CA_BUNDLE_OUTPUT", combinedBundle),
	}
	return container
}

// certificateEnv points every TLS client that a pod may use at the bundle. Those
// of databases and object stores get it only if the platform or a user names
// authorities: what a pod adds for its own sake must not change how it reaches
// the data. A database is made to prove who it is only for a user who named
// authorities and no mode: that of the platform says nothing about databases. Where
// it had to prove it by these before the take-over, it continues to.
func caBundleEnv(m *mlflowv1.MLflow, in Inputs) []envVar {
	var env []envVar
	for _, name := range []string{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE"} {
		env = append(env, value(name, combinedBundle))
	}
	if len(caSources(m, in)) == 0 {
		return env
	}
	env = append(env, value("PGSSLROOTCERT", combinedBundle))
	named := m.Spec.CABundleConfigMap != nil && m.Spec.CABundleConfigMap.Name != ""
	if (named || in.VerifyPostgreSQL) && !setsSSLMode(m) {
		env = append(env, value(envSSLMode, resources.VerifyFull))
	}
	return append(env,
		value("MLFLOW_MYSQL_CA", combinedBundle),
		value("MLFLOW_S3_IGNORE_TLS", "false"))
}

// verifyAnnotation on the Deployment keeps for later reconciles that PostgreSQL was verified when it was taken over.
const verifyAnnotation = "mlflow.opendatahub.io/verify-postgresql"

// KeepsVerification reports that a Deployment was taken over with full verification of PostgreSQL, or is about to be.
func VerifiesPostgres(d *appsv1.Deployment) bool {
	if d.Annotations[verifyAnnotation] != "" || d.Labels[names.OperatorLabel] != "" {
		return d.Annotations[verifyAnnotation] != ""
	}
	return slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return c.Name == containerName && slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == envSSLMode && e.Value == resources.VerifyFull })
	})
}

// needs are requests and limits of a small container.
func requirements(cpu, memory, cpuLimit, memoryLimit string) *corev1ac.ResourceRequirementsApplyConfiguration {
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	return corev1ac.ResourceRequirements().WithRequests(list(cpu, memory)).WithLimits(list(cpuLimit, memoryLimit))
}
