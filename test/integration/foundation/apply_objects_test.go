package foundation

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
)

var widgetKind = schema.GroupVersionKind{Group: "apply.test.opendatahub.io", Version: "v1", Kind: "Widget"}

// widgetCRD returns a CRD whose schema is hard to compare: lists with keys, defaults inside lists, sets, int-or-string fields.
func widgetCRD() *apiextensionsv1.CustomResourceDefinition {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	item := apiextensionsv1.JSONSchemaProps{Type: "object", Required: []string{"name"},
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"name": text, "colour": {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"red"`)}}}}
	object := func(properties map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
	}
	list := func(kind string, of apiextensionsv1.JSONSchemaProps, keys ...string) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "array", XListType: &kind, XListMapKeys: keys,
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &of}}
	}
	schema := object(map[string]apiextensionsv1.JSONSchemaProps{
		"spec": object(map[string]apiextensionsv1.JSONSchemaProps{
			"parts":   list("map", item, "name"),
			"tags":    list("set", text),
			"recipe":  list("atomic", object(map[string]apiextensionsv1.JSONSchemaProps{"step": text, "note": text})),
			"port":    {XIntOrString: true},
			"ratio":   {Type: "number"},
			"options": {Type: "object", XPreserveUnknownFields: new(true)},
			"size":    {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"small"`)}},
		}),
		"status": {Type: "object", XPreserveUnknownFields: new(true)},
	})
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + widgetKind.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: widgetKind.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: widgetKind.Kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: widgetKind.Version, Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

func widget(namespace string) *unstructured.Unstructured {
	return newUnstructured(widgetKind.GroupVersion().String(), widgetKind.Kind, namespace, map[string]any{
		"parts":   []any{map[string]any{"name": "b"}, map[string]any{"name": "a", "colour": "blue"}},
		"tags":    []any{"y", "x"},
		"recipe":  []any{map[string]any{"step": "cut", "note": "sharp"}, map[string]any{"step": "fold"}},
		"port":    int64(8080),
		"ratio":   0.5,
		"options": map[string]any{"deep": map[string]any{"list": []any{int64(1), "two"}}, "empty": map[string]any{}},
	})
}

// deployment returns a Deployment with many of the fields that components set.
func deployment(namespace string) *appsv1ac.DeploymentApplyConfiguration {
	labels := map[string]string{"app": "server"}
	return appsv1ac.Deployment("server", namespace).WithLabels(labels).WithAnnotations(map[string]string{"note": "<&>"}).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(2).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
			WithStrategy(appsv1ac.DeploymentStrategy().WithType("RollingUpdate").WithRollingUpdate(
				appsv1ac.RollingUpdateDeployment().WithMaxSurge(intstr.FromString("25%")).WithMaxUnavailable(intstr.FromInt32(0)))).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(podSpec())))
}

func podSpec() *corev1ac.PodSpecApplyConfiguration {
	terms := corev1ac.NodeSelectorTerm().WithMatchExpressions(
		corev1ac.NodeSelectorRequirement().WithKey("kubernetes.io/os").WithOperator(corev1.NodeSelectorOpIn).WithValues("linux"))
	return corev1ac.PodSpec().
		WithServiceAccountName("server").
		WithSecurityContext(corev1ac.PodSecurityContext().WithRunAsNonRoot(true).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithNodeSelector(map[string]string{"kubernetes.io/os": "linux"}).
		WithTolerations(corev1ac.Toleration().WithKey("gpu").WithOperator(corev1.TolerationOpExists).WithEffect(corev1.TaintEffectNoSchedule)).
		WithAffinity(corev1ac.Affinity().WithNodeAffinity(corev1ac.NodeAffinity().
			WithRequiredDuringSchedulingIgnoredDuringExecution(corev1ac.NodeSelector().WithNodeSelectorTerms(terms)))).
		WithInitContainers(corev1ac.Container().WithName("prepare").WithImage("example.com/prepare:1").WithCommand("sh", "-c", "true")).
		WithContainers(container(), corev1ac.Container().WithName("proxy").WithImage("example.com/proxy:1").
			WithPorts(corev1ac.ContainerPort().WithContainerPort(53), corev1ac.ContainerPort().WithContainerPort(53).WithProtocol("UDP"))).
		WithVolumes(
			corev1ac.Volume().WithName("scratch").WithEmptyDir(corev1ac.EmptyDirVolumeSource()),
			corev1ac.Volume().WithName("memory").WithEmptyDir(corev1ac.EmptyDirVolumeSource().WithMedium("Memory").WithSizeLimit(resource.MustParse("1024Mi"))),
			corev1ac.Volume().WithName("settings").WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName("server").
				WithItems(corev1ac.KeyToPath().WithKey("a").WithPath("a.txt"))),
			corev1ac.Volume().WithName("tls").WithSecret(corev1ac.SecretVolumeSource().WithSecretName("tls").WithOptional(false)),
			corev1ac.Volume().WithName("token").WithProjected(corev1ac.ProjectedVolumeSource().WithSources(corev1ac.VolumeProjection().
				WithServiceAccountToken(corev1ac.ServiceAccountTokenProjection().WithPath("token").WithAudience("api")))),
			corev1ac.Volume().WithName("who").WithDownwardAPI(corev1ac.DownwardAPIVolumeSource().WithItems(
				corev1ac.DownwardAPIVolumeFile().WithPath("name").WithFieldRef(corev1ac.ObjectFieldSelector().WithFieldPath("metadata.name")))),
			corev1ac.Volume().WithName("data").WithPersistentVolumeClaim(corev1ac.PersistentVolumeClaimVolumeSource().WithClaimName("server")))
}

func container() *corev1ac.ContainerApplyConfiguration {
	probe := func() *corev1ac.ProbeApplyConfiguration {
		return corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().WithPath("/health").WithPort(intstr.FromString("https")).
			WithScheme("HTTPS").WithHTTPHeaders(corev1ac.HTTPHeader().WithName("Host").WithValue("localhost"))).WithPeriodSeconds(10)
	}
	return corev1ac.Container().WithName("server").WithImage("example.com/server:1").
		WithArgs("--port=8443", "--verbose").
		WithEnv(
			corev1ac.EnvVar().WithName("PLAIN").WithValue("1000m"),
			corev1ac.EnvVar().WithName("EMPTY").WithValue(""),
			corev1ac.EnvVar().WithName("NODE").WithValueFrom(corev1ac.EnvVarSource().WithFieldRef(
				corev1ac.ObjectFieldSelector().WithFieldPath("spec.nodeName"))),
			corev1ac.EnvVar().WithName("CPU").WithValueFrom(corev1ac.EnvVarSource().WithResourceFieldRef(
				corev1ac.ResourceFieldSelector().WithResource("limits.cpu"))),
			corev1ac.EnvVar().WithName("PASSWORD").WithValueFrom(corev1ac.EnvVarSource().WithSecretKeyRef(
				corev1ac.SecretKeySelector().WithName("db").WithKey("password").WithOptional(false)))).
		WithEnvFrom(corev1ac.EnvFromSource().WithPrefix("DB_").WithSecretRef(corev1ac.SecretEnvSource().WithName("db"))).
		WithPorts(
			corev1ac.ContainerPort().WithName("https").WithContainerPort(8443),
			corev1ac.ContainerPort().WithName("metrics").WithContainerPort(9090).WithProtocol("TCP"),
			corev1ac.ContainerPort().WithName("ten").WithContainerPort(10000)).
		WithReadinessProbe(probe()).WithLivenessProbe(probe().WithInitialDelaySeconds(0)).
		WithResources(corev1ac.ResourceRequirements().
			WithRequests(corev1.ResourceList{"cpu": resource.MustParse("1000m"), "memory": resource.MustParse("1024Mi")}).
			WithLimits(corev1.ResourceList{"cpu": resource.MustParse("2.5"), "memory": resource.MustParse("2Gi")})).
		WithSecurityContext(corev1ac.SecurityContext().WithAllowPrivilegeEscalation(false).WithReadOnlyRootFilesystem(true).
			WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))).
		WithVolumeMounts(
			corev1ac.VolumeMount().WithName("scratch").WithMountPath("/tmp").WithReadOnly(false),
			corev1ac.VolumeMount().WithName("tls").WithMountPath("/tls").WithReadOnly(true),
			corev1ac.VolumeMount().WithName("memory").WithMountPath("/memory").WithSubPath("x"),
			corev1ac.VolumeMount().WithName("settings").WithMountPath("/settings"),
			corev1ac.VolumeMount().WithName("token").WithMountPath("/token"),
			corev1ac.VolumeMount().WithName("who").WithMountPath("/who"),
			corev1ac.VolumeMount().WithName("data").WithMountPath("/data"))
}

func networkPolicy(namespace string) *networkingv1ac.NetworkPolicyApplyConfiguration {
	return networkingv1ac.NetworkPolicy("server", namespace).WithSpec(networkingv1ac.NetworkPolicySpec().
		WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{"app": "server"})).
		WithPolicyTypes("Ingress", "Egress").
		WithIngress(networkingv1ac.NetworkPolicyIngressRule().
			WithPorts(networkingv1ac.NetworkPolicyPort().WithPort(intstr.FromInt32(8443))).
			WithFrom(networkingv1ac.NetworkPolicyPeer().WithNamespaceSelector(metav1ac.LabelSelector()))).
		WithEgress(networkingv1ac.NetworkPolicyEgressRule().
			WithPorts(networkingv1ac.NetworkPolicyPort().WithProtocol("UDP").WithPort(intstr.FromInt32(53)))))
}

func service(namespace string) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service("server", namespace).WithSpec(corev1ac.ServiceSpec().
		WithSelector(map[string]string{"app": "server"}).
		WithPorts(
			corev1ac.ServicePort().WithName("https").WithPort(8443).WithTargetPort(intstr.FromString("https")),
			corev1ac.ServicePort().WithName("metrics").WithPort(9090).WithProtocol("TCP")))
}

func claim(namespace string) *corev1ac.PersistentVolumeClaimApplyConfiguration {
	return corev1ac.PersistentVolumeClaim("server", namespace).WithSpec(corev1ac.PersistentVolumeClaimSpec().
		WithAccessModes(corev1.ReadWriteOnce).
		WithResources(corev1ac.VolumeResourceRequirements().WithRequests(corev1.ResourceList{"storage": resource.MustParse("2048Mi")})))
}

func configMap(namespace, name string) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(name, namespace).WithData(map[string]string{"a": "1", "b": ""})
}

func newUnstructured(apiVersion, kind, namespace string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "spec": spec}}
	u.SetNamespace(namespace)
	u.SetName("server")
	return u
}

// httpRoute returns an HTTPRoute with atomic lists. Their items omit optional fields, which the API server defaults.
func httpRoute(namespace string) *unstructured.Unstructured {
	backend := map[string]any{"name": "server", "port": int64(8443)}
	path := map[string]any{"type": "PathPrefix", "value": "/server"}
	return newUnstructured("gateway.networking.k8s.io/v1", "HTTPRoute", namespace, map[string]any{
		"parentRefs": []any{map[string]any{"name": "gateway", "namespace": "elsewhere"}},
		"rules": []any{
			map[string]any{"backendRefs": []any{backend}},
			map[string]any{"backendRefs": []any{backend}, "matches": []any{
				map[string]any{"path": path},
				map[string]any{"headers": []any{map[string]any{"name": "a", "value": "b"}}},
			}},
		},
	})
}

func serviceMonitor(namespace string) *unstructured.Unstructured {
	return newUnstructured("monitoring.coreos.com/v1", "ServiceMonitor", namespace, map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"app": "server"}},
		"endpoints": []any{map[string]any{
			"port": "https", "scheme": "https", "interval": "30s",
			"tlsConfig":   map[string]any{"insecureSkipVerify": false, "serverName": "server"},
			"relabelings": []any{map[string]any{"sourceLabels": []any{"a"}, "targetLabel": "b"}},
		}},
	})
}

// oneOfEachKind returns one object of each kind in this file, and of each Ownership.
func oneOfEachKind(namespace string) apply.Desired {
	var d apply.Desired
	d.Add(
		corev1ac.ServiceAccount("server", namespace).WithImagePullSecrets(corev1ac.LocalObjectReference().WithName("pull")),
		configMap(namespace, "server"),
		corev1ac.Secret("server", namespace).WithType("Opaque").WithData(map[string][]byte{"key": []byte("value")}),
		rbacv1ac.Role("server", namespace).WithRules(rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("pods").WithVerbs("get", "list")),
		rbacv1ac.RoleBinding("server", namespace).
			WithRoleRef(rbacv1ac.RoleRef().WithKind("Role").WithName("server").WithAPIGroup("rbac.authorization.k8s.io")).
			WithSubjects(rbacv1ac.Subject().WithKind("ServiceAccount").WithName("server").WithNamespace(namespace),
				rbacv1ac.Subject().WithKind("User").WithName("jane")),
		service(namespace),
		networkPolicy(namespace),
		deployment(namespace),
		batchv1ac.CronJob("server", namespace).WithSpec(batchv1ac.CronJobSpec().WithSchedule("0 3 * * *").WithSuspend(true).
			WithJobTemplate(batchv1ac.JobTemplateSpec().WithSpec(batchv1ac.JobSpec().WithBackoffLimit(2).
				WithTemplate(corev1ac.PodTemplateSpec().WithSpec(podSpec().WithRestartPolicy(corev1.RestartPolicyNever)))))),
		client.ApplyConfigurationFromUnstructured(widget(namespace)),
		client.ApplyConfigurationFromUnstructured(httpRoute(namespace)),
		client.ApplyConfigurationFromUnstructured(serviceMonitor(namespace)),
	)
	shared := rbacv1ac.ClusterRole(namespace).WithRules(rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("pods").WithVerbs("get"))
	binding := rbacv1ac.ClusterRoleBinding(namespace).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup("rbac.authorization.k8s.io").WithKind("ClusterRole").WithName(namespace)).
		WithSubjects(rbacv1ac.Subject().WithKind("ServiceAccount").WithName("server").WithNamespace(namespace))
	return append(d,
		apply.Object{Config: claim(namespace), Ownership: apply.Unowned},
		apply.Object{Config: shared, Ownership: apply.Owned},
		apply.Object{Config: binding, Ownership: apply.Owned})
}
