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

// bundleFunctions is common to both programs. It replaces the bundle by a rename, because readers must not see a partial file, and
// skips missing sources, because the ConfigMaps are mounted as optional.
//
//go:embed ca_bundle.sh
var bundleFunctions string

// bundleLoop rebuilds the bundle at its start and whenever a source changes.
//
//go:embed ca_bundle_watch.sh
var bundleLoop string

var combineProgram, watchProgram = bundleFunctions + "combine\n", bundleFunctions + bundleLoop

// caSource is a ConfigMap with CAs, or a Secret with a CA under caKey, and its mount path.
type caSource struct{ configMap, secret, path string }

// caKey is the key of the CA in a Secret of type kubernetes.io/tls.
const caKey = "ca.crt"

// volume returns an optional volume for the source. It mounts only the CA of a Secret, not its private key.
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

// withCABundle combines the CAs of the image and the sources into one file for clients in the pod. It returns an empty part without
// sources. With watch, a sidecar updates the file.
func withCABundle(m *mlflowv1.MLflow, in Inputs, sources []caSource, watch bool) part {
	if len(sources) == 0 {
		return part{}
	}
	var p part
	for i, source := range sources {
		p.volumes = append(p.volumes, source.volume(caVolume(i)))
	}
	p.volumes = append(p.volumes, corev1ac.Volume().WithName(combinedVolume).WithEmptyDir(corev1ac.EmptyDirVolumeSource()))
	p.mounts = append(p.mounts, resources.ReadOnlyMount(combinedVolume, combinedPath))
	p.env = caBundleEnv(m, in)
	p.initContainers = append(p.initContainers,
		bundleContainer(m, in, sources, "combine-ca-bundles", combineProgram, requirements("10m", "16Mi", "100m", "64Mi")))
	if watch {
		watcher := bundleContainer(m, in, sources, "ca-bundle-watcher", watchProgram, requirements("5m", "8Mi", "50m", "32Mi"))
		watcher.Env = append([]envVar{value("CA_BUNDLE_WATCH_INTERVAL", "30")}, watcher.Env...)
		p.sidecars = append(p.sidecars, watcher)
	}
	return p
}

func bundleContainer(m *mlflowv1.MLflow, in Inputs, sources []caSource, name, program string,
	containerResources *corev1ac.ResourceRequirementsApplyConfiguration,
) *corev1ac.ContainerApplyConfiguration {
	container := imageContainer(m, in, name).
		WithCommand("/bin/sh", "-c", program).
		WithVolumeMounts(resources.Mount("tmp", tmpPath), resources.Mount(combinedVolume, combinedPath)).
		WithResources(containerResources)
	var paths []string
	for i, source := range sources {
		paths = append(paths, source.path)
		container.WithVolumeMounts(resources.ReadOnlyMount(caVolume(i), source.path))
	}
	container.Env = []envVar{
		value("CA_BUNDLE_FILE_PATHS", systemBundle),
		value("CA_BUNDLE_MOUNT_PATHS", strings.Join(paths, " ")),
		value("CA_BUNDLE_OUTPUT", combinedBundle),
	}
	return container
}

// caBundleEnv configures the TLS clients of a pod to use the bundle. Clients of databases use it only if the platform or the user provides
// CAs. Unless the spec sets an SSL mode, PostgreSQL is then verified if the user provides CAs or the legacy operator
// verified it: the CAs of the platform may not include the CA of the database.
func caBundleEnv(m *mlflowv1.MLflow, in Inputs) []envVar {
	var env []envVar
	for _, name := range []string{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE"} {
		env = append(env, value(name, combinedBundle))
	}
	if len(caSources(m, in)) == 0 {
		return env
	}
	env = append(env, value("PGSSLROOTCERT", combinedBundle))
	customCA := m.Spec.CABundleConfigMap != nil && m.Spec.CABundleConfigMap.Name != ""
	if (customCA || in.VerifyPostgreSQL) && !setsSSLMode(m) {
		env = append(env, value(envSSLMode, resources.VerifyFull))
	}
	return append(env,
		value("MLFLOW_MYSQL_CA", combinedBundle),
		value("MLFLOW_S3_IGNORE_TLS", "false"))
}

// verifyAnnotation records on an adopted Deployment that the legacy operator verified PostgreSQL.
const verifyAnnotation = "mlflow.opendatahub.io/verify-postgresql"

// VerifiesPostgres reports whether the legacy operator enabled full verification of PostgreSQL in a Deployment that is adopted or will be.
func VerifiesPostgres(d *appsv1.Deployment) bool {
	if d.Annotations[verifyAnnotation] != "" || d.Labels[names.OperatorLabel] != "" {
		return d.Annotations[verifyAnnotation] != ""
	}
	return slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return c.Name == containerName && slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == envSSLMode && e.Value == resources.VerifyFull })
	})
}

// requirements returns the given requests and limits.
func requirements(cpu, memory, cpuLimit, memoryLimit string) *corev1ac.ResourceRequirementsApplyConfiguration {
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	return corev1ac.ResourceRequirements().WithRequests(list(cpu, memory)).WithLimits(list(cpuLimit, memoryLimit))
}
