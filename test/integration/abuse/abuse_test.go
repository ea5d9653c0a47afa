package abuse_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	mlflowEditor   = "editor-of-mlflow"
	registryEditor = "editor-of-modelregistry"
	runtimeEditor  = "editor-of-modelmesh-servingruntime"
	wrapperEditor  = "editor-of-codeflare-operator-appwrapper"
	rayUser        = "editor-of-rays"
	// developer also has the ClusterRole edit, which grants pods, Secrets and ServiceAccounts of the namespace.
	developer = "developer"
)

// expectRejected returns the body of a spec, which expects that the API server rejects the object as Forbidden or Invalid with the message.
func expectRejected(username, namespace, text, message string) func(SpecContext) {
	return func(ctx SpecContext) {
		err := as(username).Create(ctx, object(namespace, text), client.DryRunAll)
		Expect(err).To(MatchError(ContainSubstring(message)))
		Expect(apierrors.ReasonForError(err)).To(BeElementOf(metav1.StatusReasonForbidden, metav1.StatusReasonInvalid))
	}
}

var _ = Describe("An editor of MLflow without other permissions", func() {
	for title, attempt := range map[string]struct{ spec, message string }{
		"the ServiceAccount of the manager":                      {"{serviceAccountName: " + managerAccount + "}", "it is the ServiceAccount of the manager"},
		"the ServiceAccount of another user":                     {"{serviceAccountName: builder}", "create serviceaccounts/token builder"},
		"the CA key by envFrom":                                  {"{envFrom: [{secretRef: {name: " + webhookSecret + "}}]}", "it belongs to the manager"},
		"the CA key as an environment variable":                  {"{env: [{name: A, valueFrom: {secretKeyRef: {name: " + webhookSecret + ", key: ca.key}}}]}", "it belongs to the manager"},
		"the CA key as the URI of the database":                  {"{backendStoreUri: null, backendStoreUriFrom: {name: " + webhookSecret + ", key: ca.key}}", "it belongs to the manager"},
		"the CA key as an image pull Secret":                     {"{imagePullSecrets: [{name: " + webhookSecret + "}]}", "it belongs to the manager"},
		"a Secret of another user":                               {"{envFrom: [{secretRef: {name: model-serving-etcd}}]}", "get secrets model-serving-etcd in namespace opendatahub"},
		"a ConfigMap of another user":                            {"{envFrom: [{configMapRef: {name: some}}]}", "get configmaps some"},
		"the pod labels of the manager":                          {"{podLabels: {platform.opendatahub.io/manager: odh-platform-operator, control-plane: controller-manager, app.kubernetes.io/name: odh-platform-operator}}", "the platform selects pods by it"},
		"the pod label of the legacy manager":                    {"{podLabels: {control-plane: controller-manager}}", "create pods"},
		"the pod label of a Ray head":                            {"{podLabels: {ray.io/node-type: head}}", "the platform selects pods by it"},
		"the pod label of ModelMesh":                             {"{podLabels: {modelmesh-service: modelmesh-serving}}", "the platform selects pods by it"},
		"an image":                                               {"{image: {image: quay.io/evil/image}}", "create pods in namespace opendatahub"},
		"a privileged container":                                 {"{securityContext: {privileged: true}}", "Pod Security level baseline"},
		"additional capabilities":                                {"{securityContext: {capabilities: {add: [SYS_ADMIN]}}}", "Pod Security level baseline"},
		"an unconfined seccomp profile":                          {"{podSecurityContext: {seccompProfile: {type: Unconfined}}}", "Pod Security level baseline"},
		"a cloud IAM role":                                       {"{serviceAccountAnnotations: {eks.amazonaws.com/role-arn: admin}}", "create serviceaccounts"},
		"a clone of another claim":                               {"{storage: {dataSource: {kind: PersistentVolumeClaim, name: others}}}", "create persistentvolumeclaims"},
		"the PersistentVolume of another user":                   {"{storage: {volumeName: others}}", "create persistentvolumeclaims"},
		"the ResourceClaim of another user":                      {"{resourceClaims: [{name: gpu, resourceClaimName: others}]}", "create pods"},
		"unsafe sysctls":                                         {"{podSecurityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}}", "Pod Security level baseline"},
		"an SELinux type":                                        {"{podSecurityContext: {seLinuxOptions: {type: spc_t}}}", "Pod Security level baseline"},
		"an unmasked /proc":                                      {"{securityContext: {procMount: Unmasked}}", "Pod Security level baseline"},
		"a Windows host process":                                 {"{podSecurityContext: {windowsOptions: {hostProcess: true}}}", "Pod Security level baseline"},
		"an unconfined AppArmor profile":                         {"{securityContext: {appArmorProfile: {type: Unconfined}}}", "Pod Security level baseline"},
		"an unconfined AppArmor profile by annotation":           {"{podAnnotations: {container.apparmor.security.beta.kubernetes.io/mlflow: unconfined}}", "Pod Security level baseline"},
		"a token Secret of the manager":                          {"{envFrom: [{secretRef: {name: " + managerAccount + "-token-x}}]}", "it belongs to the manager"},
		"the CA key as the URI of a read replica":                {"{readReplicaBackendStoreUriFrom: {name: " + webhookSecret + ", key: ca.key}}", "it belongs to the manager"},
		"the CA key as the URI of the registry store":            {"{registryStoreUriFrom: {name: " + webhookSecret + ", key: ca.key}}", "it belongs to the manager"},
		"a ConfigMap of another user as an environment variable": {"{env: [{name: A, valueFrom: {configMapKeyRef: {name: some, key: k}}}]}", "get configmaps some"},
		"the CA bundle of another user":                          {"{caBundleConfigMap: {name: some, key: k}}", "get configmaps some"},
		"a clone of a claim in another namespace":                {"{storage: {dataSourceRef: {apiGroup: '', kind: PersistentVolumeClaim, name: others, namespace: kube-system}}}", "create persistentvolumeclaims"},
		"a hostPath volume":                                      {"{volumes: [{name: v, hostPath: {path: /}}]}", "exactly one of configMap"},
		"a system priority class":                                {"{priorityClassName: system-node-critical}", "create pods"},
		"the ResourceClaimTemplate of another user":              {"{resourceClaims: [{name: gpu, resourceClaimTemplateName: others}]}", "create pods"},
		"an annotation of a sidecar injector":                    {"{podAnnotations: {vault.hashicorp.com/agent-inject: 'true'}}", "create pods"},
	} {
		It("is denied "+title, expectRejected(mlflowEditor, "", mlflow(attempt.spec), attempt.message), NodeTimeout(specTimeout))
	}

	It("cannot set pod fields outside the MLflow schema, nor create a second MLflow", func(ctx SpecContext) {
		m := object("", mlflow("{hostNetwork: true, hostPID: true, nodeName: n, schedulerName: s, automountServiceAccountToken: true, "+
			"serviceAccount: "+managerAccount+", initContainers: [{name: i, image: evil}], sidecars: [{name: s, image: evil}]}"))
		Expect(as(mlflowEditor).Create(ctx, m, client.DryRunAll)).To(Succeed())
		minimal := object("", mlflow("{}"))
		Expect(as(mlflowEditor).Create(ctx, minimal, client.DryRunAll)).To(Succeed())
		Expect(m.Object["spec"]).To(Equal(minimal.Object["spec"]))
		second := object("", mlflow("{}"))
		second.SetName("")
		second.SetGenerateName("mlflow-")
		Expect(as(mlflowEditor).Create(ctx, second, client.DryRunAll)).To(MatchError(ContainSubstring("MLflow resource name must be 'mlflow'")))
	}, NodeTimeout(specTimeout))

	It("can create and scale a server, and cannot set the ServiceAccount of the manager later", func(ctx SpecContext) {
		m := object("", mlflow("{}"))
		Expect(as(mlflowEditor).Create(ctx, m)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, m))).To(Succeed()) }, NodeTimeout(specTimeout))
		By("patching the MLflow")
		patch := merge(`{"spec":{"serviceAccountName":"` + managerAccount + `"}}`)
		Expect(as(mlflowEditor).Patch(ctx, m, patch)).To(MatchError(ContainSubstring("it is the ServiceAccount of the manager")))
		replicas := merge(`{"spec":{"replicas":2}}`)
		Expect(as(mlflowEditor).Patch(ctx, m, replicas)).To(Succeed())
		By("setting an image as an administrator, and scaling the server as the editor")
		image := merge(`{"spec":{"image":{"image":"quay.io/ours/mlflow:1"}}}`)
		Expect(env.Admin.Patch(ctx, m, image)).To(Succeed())
		Expect(as(mlflowEditor).Patch(ctx, m, merge(`{"spec":{"replicas":1}}`))).To(Succeed())
	}, NodeTimeout(specTimeout))

	It("gains no permissions from objects that were stored without admission", func(ctx SpecContext) {
		configuration := object("", "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: mlflow-validating-webhook-configuration}}")
		configuration.SetNamespace("")
		DeferCleanup(func(ctx SpecContext) {
			Eventually(func() error {
				return as(mlflowEditor).Create(ctx, object("", mlflow("{image: {image: x}}")), client.DryRunAll)
			}).
				WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(MatchError(ContainSubstring("create pods")))
		}, NodeTimeout(specTimeout))
		env.DeleteTemporarily(ctx, configuration)
		m := object("", mlflow("{serviceAccountName: "+managerAccount+"}"))
		Eventually(func() error { return as(mlflowEditor).Create(ctx, m) }).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, m))).To(Succeed()) }, NodeTimeout(specTimeout))
		env.WaitForCondition(ctx, m, "Available", metav1.ConditionFalse, "Forbidden")
		err := env.Admin.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: "mlflow"}, &appsv1.Deployment{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "Deployment mlflow: %v", err)
	}, NodeTimeout(specTimeout))
})

var _ = Describe("An editor of registries without other permissions", func() {
	external := func(fields string) string { return "{postgres: {host: db, username: u, database: d, " + fields + "}}" }
	for title, attempt := range map[string]struct{ namespace, name, spec, message string }{
		"the name of ServiceAccount pipeline":                        {"", "pipeline", "{rest: {image: quay.io/evil/image}}", "is reserved for other objects"},
		"the name of ServiceAccount default":                         {"", "default", "{rest: {image: quay.io/evil/image}}", "is reserved for other objects"},
		"the name of the ServiceAccount of MLflow":                   {operatorNamespace, "mlflow-sa", "{}", "is reserved for other objects"},
		"the name of the ServiceAccount of the manager":              {operatorNamespace, managerAccount, "{}", "is reserved for other objects"},
		"the name of the catalog server":                             {"", "model-catalog", "{}", "is reserved for other objects"},
		"the name of the catalog of another registry":                {"", "demo-catalog", "{}", "is reserved for other objects"},
		"the name of the database of another registry":               {"", "demo-postgres", "{}", "is reserved for other objects"},
		"the host of a Ray dashboard [B-5]":                          {"", "ray-dashboard-c-x", "{}", "is reserved for other objects"},
		"the host of a Ray client [B-5]":                             {"", "rayclient-c-x", "{}", "is reserved for other objects"},
		"the name of the webhook Service":                            {operatorNamespace, "odh-platform-operator-webhook", "{}", "is reserved for other objects"},
		"the name of the ModelMesh Service":                          {"", "modelmesh-serving", "{}", "is reserved for other objects"},
		"the name of the Service of a Ray head":                      {"", "demo-head-svc", "{}", "is reserved for other objects"},
		"an image for the server":                                    {"", "demo", "{rest: {image: quay.io/evil/image}}", "create pods"},
		"an image for the proxy":                                     {"", "demo", "{kubeRBACProxy: {image: quay.io/evil/image}}", "create pods"},
		"an image for the database":                                  {"", "demo", "{postgres: {generateDeployment: true, image: quay.io/evil/image}}", "create pods"},
		"the CA key as the database password":                        {operatorNamespace, "demo", external("passwordSecret: {name: " + webhookSecret + ", key: ca.key}"), "it belongs to the manager"},
		"the CA key as the key of the proxy":                         {operatorNamespace, "demo", "{kubeRBACProxy: {tlsCertificateSecret: {name: " + webhookSecret + ", key: a}, tlsKeySecret: {name: " + webhookSecret + ", key: b}}}", "it belongs to the manager"},
		"a database password of another user":                        {"", "demo", external("passwordSecret: {name: other-credentials, key: password}"), "get secrets other-credentials"},
		"the etcd Secret as a root certificate":                      {"", "demo", external("sslMode: verify-full, sslRootCertificateSecret: {name: model-serving-etcd, key: etcd_connection}"), "get secrets model-serving-etcd"},
		"a ConfigMap of another user":                                {"", "demo", external("sslRootCertificateConfigMap: {name: others, key: a}"), "get configmaps others"},
		"the client key of another user":                             {"", "demo", external("sslKeySecret: {name: other-credentials, key: k}"), "get secrets other-credentials"},
		"the passphrase of the client key of another user":           {"", "demo", external("sslPasswordSecret: {name: other-credentials, key: k}"), "get secrets other-credentials"},
		"the serving certificate of another user":                    {"", "demo", "{kubeRBACProxy: {tlsCertificateSecret: {name: other-credentials, key: a}, tlsKeySecret: {name: other-credentials, key: b}}}", "get secrets other-credentials"},
		"a MySQL password of another user":                           {"", "demo", "{postgres: null, mysql: {host: db, username: u, database: d, passwordSecret: {name: other-credentials, key: k}}}", "get secrets other-credentials"},
		"a Secret of another user as MySQL root certificates":        {"", "demo", "{postgres: null, mysql: {host: db, username: u, database: d, sslRootCertificatesSecretName: other-credentials}}", "get secrets other-credentials"},
		"the generated database password for another server":         {"", "demo", external("passwordSecret: {name: demo-postgres-credentials, key: k}"), `another server for Secret "demo-postgres-credentials"`},
		"the generated proxy key as the password for another server": {"", "demo", external("passwordSecret: {name: demo-kube-rbac-proxy, key: tls.key}"), `another server for Secret "demo-kube-rbac-proxy"`},
		"the connection Secret of another user":                      {"", "demo", "{postgres: {connectionSecretName: other-credentials}}", "get secrets other-credentials"},
		"a custom domain":                                            {"", "demo", "{kubeRBACProxy: {domain: apps.others.example.com}}", "routes/custom-host"},
	} {
		It("is denied "+title, func(ctx SpecContext) {
			namespace := attempt.namespace
			if namespace == "" {
				namespace = team
			}
			expectRejected(registryEditor, namespace, registry(attempt.name, attempt.spec), attempt.message)(ctx)
		}, NodeTimeout(specTimeout))
	}

	It("cannot generate a reserved name, nor set an image in the annotation of version v1alpha1", func(ctx SpecContext) {
		prefixed := object(team, registry("x", "{}"))
		prefixed.SetName("")
		prefixed.SetGenerateName("modelmesh-serving-")
		Expect(as(registryEditor).Create(ctx, prefixed, client.DryRunAll)).To(MatchError(ContainSubstring("is reserved for other objects")))
		older := object(team, registry("older", "{grpc: {}, kubeRBACProxy: null}"))
		older.SetAPIVersion("modelregistry.opendatahub.io/v1alpha1")
		older.SetAnnotations(map[string]string{"modelregistry.opendatahub.io/v1beta1-fields": `{"postgres":{"image":"quay.io/evil/image"}}`})
		Expect(as(registryEditor).Create(ctx, older, client.DryRunAll)).To(MatchError(ContainSubstring("create pods")))
	}, NodeTimeout(specTimeout))

	It("cannot redirect the password of another user to another server", func(ctx SpecContext) {
		m := object(team, registry("trusting", "{postgres: {host: db, username: u, database: d, passwordSecret: {name: other-credentials, key: k}}}"))
		Expect(as(developer).Create(ctx, m)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(as(developer).Delete(ctx, m)).To(Succeed()) }, NodeTimeout(specTimeout))
		for _, change := range []string{
			`"postgres":{"host":"evil.example.com"}`, `"postgres":{"host":null,"hostAddress":"10.0.0.1"}`, `"postgres":{"port":1}`,
			`"postgres":null,"mysql":{"host":"evil.example.com","username":"u","database":"d","passwordSecret":{"name":"other-credentials","key":"k"}}`,
		} {
			err := as(registryEditor).Patch(ctx, m.DeepCopy(), merge(`{"spec":{`+change+`}}`))
			Expect(err).To(MatchError(And(ContainSubstring(`another server for Secret "other-credentials"`), ContainSubstring("get secrets other-credentials"))), change)
		}
		Expect(as(registryEditor).Patch(ctx, m.DeepCopy(), merge(`{"spec":{"postgres":{"database":"other"}}}`))).To(Succeed())
		Expect(as(developer).Patch(ctx, m.DeepCopy(), merge(`{"spec":{"postgres":{"host":"moved"}}}`))).To(Succeed())
	}, NodeTimeout(specTimeout))

	It("can create a registry, and cannot reference a Secret in an update or in version v1alpha1", func(ctx SpecContext) {
		m := object(team, registry("valid", "{}"))
		Expect(as(registryEditor).Create(ctx, m)).To(Succeed())
		patch := merge(`{"spec":{"postgres":{"passwordSecret":{"name":"other-credentials","key":"k"}}}}`)
		Expect(as(registryEditor).Patch(ctx, m, patch)).To(MatchError(ContainSubstring("get secrets other-credentials")))
		older := object(team, registry("older", "{grpc: {}, kubeRBACProxy: null, postgres: {host: db, username: u, database: d, passwordSecret: {name: other-credentials, key: k}}}"))
		older.SetAPIVersion("modelregistry.opendatahub.io/v1alpha1")
		Expect(as(registryEditor).Create(ctx, older, client.DryRunAll)).To(MatchError(ContainSubstring("get secrets other-credentials")))
		By("patching it as a developer of the namespace, who may read the Secret")
		Expect(as(developer).Patch(ctx, m, patch)).To(Succeed())
	}, NodeTimeout(specTimeout))
})

var _ = Describe("An editor of ServingRuntimes", func() {
	container := func(fields string) string { return "{containers: [{name: server, image: i, " + fields + "}]}" }
	for title, attempt := range map[string]struct{ user, spec, message string }{
		"an image":                                           {runtimeEditor, "{}", "create pods in namespace"},
		"a Secret in a volume":                               {runtimeEditor, "{volumes: [{name: v, secret: {secretName: other-credentials}}]}", "get secrets other-credentials"},
		"a Secret in a projected volume":                     {runtimeEditor, "{volumes: [{name: v, projected: {sources: [{secret: {name: other-credentials}}]}}]}", "get secrets other-credentials"},
		"a Secret in an environment variable":                {runtimeEditor, container("env: [{name: A, valueFrom: {secretKeyRef: {name: model-serving-etcd, key: k}}}]"), "get secrets model-serving-etcd"},
		"a Secret in an environment variable of the adapter": {runtimeEditor, "{builtInAdapter: {serverType: mlserver, runtimeManagementPort: 8001, env: [{name: A, valueFrom: {secretKeyRef: {name: other-credentials, key: k}}}]}}", "get secrets other-credentials"},
		"an image pull Secret":                               {runtimeEditor, "{imagePullSecrets: [{name: other-credentials}]}", "get secrets other-credentials"},
		"a ServiceAccount token":                             {runtimeEditor, "{volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: token}}]}}]}", "token of a ServiceAccount"},
		"a PersistentVolumeClaim":                            {runtimeEditor, "{volumes: [{name: v, persistentVolumeClaim: {claimName: others}}]}", `volume "v"`},
		"a ServiceAccount token for another audience":        {runtimeEditor, "{volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: token, audience: vault}}]}}]}", "token of a ServiceAccount"},
		"an ephemeral volume":                                {runtimeEditor, "{volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {volumeName: others, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]}", `volume "v"`},
		"a CSI volume with a Secret":                         {runtimeEditor, "{volumes: [{name: v, csi: {driver: d, nodePublishSecretRef: {name: other-credentials}}}]}", "get secrets other-credentials"},
		"an NFS volume":                                      {runtimeEditor, "{volumes: [{name: v, nfs: {server: s, path: /}}]}", `volume "v"`},
		"a postStart hook":                                   {runtimeEditor, container("lifecycle: {postStart: {exec: {command: [sh]}}}"), `container "server"`},
		"a probe of another host":                            {runtimeEditor, container("livenessProbe: {httpGet: {host: 169.254.169.254, port: 80}}"), `container "server"`},
		"LD_PRELOAD in the adapter":                          {runtimeEditor, "{builtInAdapter: {serverType: mlserver, runtimeManagementPort: 8001, env: [{name: LD_PRELOAD, value: /models/evil.so}]}}", `container "adapter"`},
		"an unconfined seccomp profile":                      {developer, container("securityContext: {seccompProfile: {type: Unconfined}}"), "Pod Security level baseline"},
		"an SELinux type":                                    {developer, container("securityContext: {seLinuxOptions: {type: spc_t}}"), "Pod Security level baseline"},
		"a Windows host process":                             {developer, container("securityContext: {windowsOptions: {hostProcess: true}}"), "Pod Security level baseline"},
		"labels that select other pods":                      {runtimeEditor, "{labels: {app: mlflow}}", `label of pods "app"`},
		"a hostPath volume":                                  {developer, "{volumes: [{name: v, hostPath: {path: /}}]}", "Pod Security level baseline"},
		"a host port":                                        {developer, container("ports: [{containerPort: 9000, hostPort: 80}]"), "Pod Security level baseline"},
		"a privileged container":                             {developer, container("securityContext: {privileged: true}"), "Pod Security level baseline"},
		"additional capabilities":                            {developer, container("securityContext: {capabilities: {add: [NET_ADMIN]}}"), "Pod Security level baseline"},
		"the pod label of the manager":                       {developer, "{labels: {platform.opendatahub.io/manager: odh-platform-operator}}", "the platform selects pods by it"},
	} {
		It("is denied "+title, func(ctx SpecContext) {
			err := as(attempt.user).Create(ctx, object(team, runtime("attempt", attempt.spec)), client.DryRunAll)
			Expect(err).To(HaveOccurred())
			Expect(apierrors.ReasonForError(err)).To(Equal(metav1.StatusReasonForbidden))
			Expect(err.Error()).To(ContainSubstring(attempt.message))
		}, NodeTimeout(specTimeout))
	}

	It("cannot mount the CA key in the namespace of the manager, even with permission to read Secrets", func(ctx SpecContext) {
		err := as(developer).Create(ctx, object(operatorNamespace, runtime("attempt", "{volumes: [{name: v, secret: {secretName: "+webhookSecret+"}}]}")), client.DryRunAll)
		Expect(err).To(MatchError(ContainSubstring("it belongs to the manager")))
	}, NodeTimeout(specTimeout))

	It("can scale the runtime of another user, and cannot change its pods", func(ctx SpecContext) {
		r := object(team, runtime("shared", "{}"))
		Expect(as(developer).Create(ctx, r)).To(Succeed())
		Expect(as(runtimeEditor).Patch(ctx, r, merge(`{"spec":{"replicas":1}}`))).To(Succeed())
		command := merge(`{"spec":{"containers":[{"name":"server","image":"quay.io/example/server","command":["sh"]}]}}`)
		Expect(as(runtimeEditor).Patch(ctx, r, command)).To(MatchError(ContainSubstring("create pods")))
	}, NodeTimeout(specTimeout))

	It("cannot publish the models of another user, nor disable their authentication", func(ctx SpecContext) {
		r := object(team, runtime("published", "{}"))
		r.SetAnnotations(map[string]string{"enable-route": "true", "enable-auth": "true"})
		Expect(as(developer).Create(ctx, r)).To(Succeed())
		annotate := func(annotations string) error {
			return as(runtimeEditor).Patch(ctx, r.DeepCopy(), merge(`{"metadata":{"annotations":`+annotations+`}}`))
		}
		Expect(annotate(`{"enable-auth":"false"}`)).To(MatchError(ContainSubstring("create pods")))
		Expect(annotate(`{"enable-auth":null}`)).To(MatchError(ContainSubstring("create pods")))
		Expect(annotate(`{"enable-route":null}`)).To(Succeed())
		Expect(annotate(`{"enable-auth":"no"}`)).To(Succeed())
		Expect(annotate(`{"enable-route":"true"}`)).To(MatchError(ContainSubstring("create pods")))
	}, NodeTimeout(specTimeout))

	It("cannot turn a KServe runtime, which no webhook validates, into a ModelMesh runtime", func(ctx SpecContext) {
		r := object(team, runtime("single", "{multiModel: false, volumes: [{name: v, hostPath: {path: /}}]}"))
		Expect(as(runtimeEditor).Create(ctx, r)).To(Succeed())
		multi := merge(`{"spec":{"multiModel":true}}`)
		Expect(as(developer).Patch(ctx, r, multi)).To(MatchError(ContainSubstring("Pod Security level baseline")))
		Expect(as(runtimeEditor).Patch(ctx, r, multi)).To(MatchError(ContainSubstring("create pods")))
	}, NodeTimeout(specTimeout))
})

var _ = Describe("An editor of AppWrappers", func() {
	const pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}"
	const rolebinding = "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: r}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}}"
	for title, attempt := range map[string]struct {
		user, namespace string
		components      func() []string
		message         string
	}{
		"a Pod":    {wrapperEditor, "", func() []string { return []string{pod} }, "is not authorized to create pods"},
		"a Job":    {wrapperEditor, "", func() []string { return []string{job("j", "{}")} }, "is not authorized to create jobs.batch"},
		"a Secret": {wrapperEditor, "", func() []string { return []string{pod, "{apiVersion: v1, kind: Secret, metadata: {name: s}}"} }, "is not authorized to create secrets"},
		"a ServiceAccount token Secret": {wrapperEditor, "", func() []string {
			return []string{pod, "{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: s, annotations: {kubernetes.io/service-account.name: default}}}"}
		}, "is not authorized to create secrets"},
		"a RoleBinding": {admin, "", func() []string { return []string{pod, rolebinding} }, "objects that grant permissions"},
		"a namespace":   {admin, "", func() []string { return []string{pod, "{apiVersion: v1, kind: Namespace, metadata: {name: mine}}"} }, "cluster-scoped"},
		"a Pod in another namespace": {developer, "", func() []string {
			return []string{"{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: kube-system}, spec: {containers: [{name: c, image: i}]}}"}
		}, "other namespaces"},
		"a nested AppWrapper": {admin, "", func() []string { return []string{flow(wrapper(pod))} }, "Nested AppWrappers"},
		"a nested AppWrapper with its kind in capitals": {admin, "", func() []string {
			return []string{"{apiVersion: workload.codeflare.dev/v1beta2, kind: APPWRAPPER, metadata: {name: x}}"}
		}, "Nested AppWrappers"},
		"an Eviction": {developer, "", func() []string { return []string{pod, "{apiVersion: policy/v1, kind: Eviction, metadata: {name: p}}"} }, "the cluster serves no Eviction"},
		"a TokenRequest": {developer, "", func() []string {
			return []string{pod, "{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, metadata: {name: default}, spec: {audiences: []}}"}
		}, "the cluster serves no TokenRequest"},
		"a LocalSubjectAccessReview": {wrapperEditor, "", func() []string {
			return []string{pod, "{apiVersion: authorization.k8s.io/v1, kind: LocalSubjectAccessReview, metadata: {name: x}}"}
		}, "is not authorized to create localsubjectaccessreviews"},
		"an MLflow": {admin, "", func() []string { return []string{pod, flow(mlflow("{}"))} }, "cluster-scoped"},
		"a Catalog": {admin, "", func() []string { return []string{pod, flow(catalog("catalog", "{}"))} }, "the permissions of its creator limit its pods"},
		"the ServiceAccount of the manager in the deprecated field": {admin, operatorNamespace, func() []string { return []string{job("j", "{serviceAccount: "+managerAccount+"}")} }, "it is the ServiceAccount of the manager"},
		"the CA key in an init container": {admin, operatorNamespace, func() []string {
			return []string{job("j", "{initContainers: [{name: i, image: i, envFrom: [{secretRef: {name: "+webhookSecret+"}}]}]}")}
		}, "it belongs to the manager"},
		"the CA key in a CSI volume": {admin, operatorNamespace, func() []string {
			return []string{job("j", "{volumes: [{name: v, csi: {driver: d, nodePublishSecretRef: {name: "+webhookSecret+"}}}]}")}
		}, "it belongs to the manager"},
		"a ModelRegistry":                   {admin, "", func() []string { return []string{pod, flow(registry("wrapped", "{}"))} }, "the permissions of its creator limit its pods"},
		"a ServingRuntime":                  {admin, "", func() []string { return []string{pod, flow(runtime("wrapped", "{}"))} }, "the permissions of its creator limit its pods"},
		"the ServiceAccount of the manager": {admin, operatorNamespace, func() []string { return []string{job("j", "{serviceAccountName: "+managerAccount+"}")} }, "it is the ServiceAccount of the manager"},
		"the CA key in a volume": {admin, operatorNamespace, func() []string {
			return []string{job("j", "{volumes: [{name: v, secret: {secretName: "+webhookSecret+"}}]}")}
		}, "it belongs to the manager"},
	} {
		It("is denied "+title, func(ctx SpecContext) {
			namespace := attempt.namespace
			if namespace == "" {
				namespace = team
			}
			expectRejected(attempt.user, namespace, wrapper(attempt.components()...), attempt.message)(ctx)
		}, NodeTimeout(specTimeout))
	}

	It("cannot add pods to the AppWrapper of another user, nor labels that select pods of the platform", func(ctx SpecContext) {
		w := object(team, wrapper(job("queued", "{}")))
		Expect(unstructured.SetNestedField(w.Object, true, "spec", "suspend")).To(Succeed())
		Expect(as(admin).Create(ctx, w)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(as(wrapperEditor).Delete(ctx, w)).To(Succeed()) }, NodeTimeout(specTimeout))
		changeAs := func(username, path, value string) error {
			patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/spec/components/0/`+path+`","value":`+value+`}]`))
			return as(username).Patch(ctx, w.DeepCopy(), patch)
		}
		change := func(path, value string) error { return changeAs(wrapperEditor, path, value) }
		Expect(changeAs(admin, "podSetInfos", `[{"labels":{"platform.opendatahub.io/manager":"odh-platform-operator"}}]`)).To(MatchError(ContainSubstring("the platform selects pods by it")))
		Expect(changeAs(admin, "podSetInfos", `[{"labels":{"ray.io/node-type":"head"}}]`)).To(MatchError(ContainSubstring("the platform selects pods by it")))
		Expect(change("template/spec/template/spec/containers/0/image", `"quay.io/evil/image"`)).To(MatchError(ContainSubstring("attempt to change immutable field")))
		Expect(change("template/spec/parallelism", "1000")).To(MatchError(ContainSubstring("attempt to change immutable field")))
		Expect(change("podSetInfos", `[{"nodeSelector":{"a":"b"}}]`)).To(MatchError(ContainSubstring("is not authorized to create jobs.batch")))
		Expect(as(wrapperEditor).Patch(ctx, w.DeepCopy(), merge(`{"spec":{"suspend":false}}`))).To(MatchError(ContainSubstring("is not authorized to create jobs.batch")))
		Expect(change("podSets", `[{"path":"template.spec.template","replicas":1000}]`)).To(MatchError(ContainSubstring("attempt to change immutable field")))
	}, NodeTimeout(specTimeout))

	It("cannot set the creator labels of another user", func(ctx SpecContext) {
		w := object(team, wrapper("{apiVersion: v1, kind: Pod, metadata: {generateName: p-}, spec: {containers: [{name: c, image: i}]}}"))
		w.SetLabels(map[string]string{"workload.codeflare.dev/user": "another-user", "workload.codeflare.dev/userid": "0"})
		bind(ctx, team, developer, "codeflare-operator-appwrapper-editor-role")
		Expect(as(developer).Create(ctx, w, client.DryRunAll)).To(Succeed())
		Expect(w.GetLabels()).To(HaveKeyWithValue("workload.codeflare.dev/user", developer))
	}, NodeTimeout(specTimeout))
})

var _ = Describe("An editor of RayClusters without other permissions", func() {
	for title, attempt := range map[string]struct{ pod, message string }{
		"the CA key in a volume":                {"{volumes: [{name: v, secret: {secretName: " + webhookSecret + "}}]}", "it belongs to the manager"},
		"the CA key by envFrom":                 {"{containers: [{name: head, image: i, envFrom: [{secretRef: {name: " + webhookSecret + "}}]}]}", "it belongs to the manager"},
		"the CA key in an environment variable": {"{containers: [{name: head, image: i, env: [{name: A, valueFrom: {secretKeyRef: {name: " + webhookSecret + ", key: ca.key}}}]}]}", "it belongs to the manager"},
		"the CA key as an image pull Secret":    {"{imagePullSecrets: [{name: " + webhookSecret + "}]}", "it belongs to the manager"},
		"the CA key in a projected volume":      {"{volumes: [{name: v, projected: {sources: [{secret: {name: " + webhookSecret + "}}]}}]}", "it belongs to the manager"},
		"the CA key in a CSI volume":            {"{volumes: [{name: v, csi: {driver: d, nodePublishSecretRef: {name: " + webhookSecret + "}}}]}", "it belongs to the manager"},
		"the CA key in an init container":       {"{initContainers: [{name: i, image: i, envFrom: [{secretRef: {name: " + webhookSecret + "}}]}]}", "it belongs to the manager"},
		"the CA key in an additional container": {"{containers: [{name: head, image: i}, {name: more, image: i, envFrom: [{secretRef: {name: " + webhookSecret + "}}]}]}", "it belongs to the manager"},
		"a token Secret of the manager":         {"{volumes: [{name: v, secret: {secretName: " + managerAccount + "-token-x}}]}", "it belongs to the manager"},
	} {
		It("is denied "+title, expectRejected(rayUser, operatorNamespace, rayCluster("attempt", attempt.pod), attempt.message), NodeTimeout(specTimeout))
	}

	It("cannot use the ServiceAccount of the manager, which is replaced in the head and rejected in workers", func(ctx SpecContext) {
		head := object(operatorNamespace, rayCluster("attempt", "{serviceAccountName: "+managerAccount+"}"))
		Expect(as(rayUser).Create(ctx, head, client.DryRunAll)).To(Succeed())
		account, _, err := unstructured.NestedString(head.Object, "spec", "headGroupSpec", "template", "spec", "serviceAccountName")
		Expect(err).NotTo(HaveOccurred())
		Expect(account).NotTo(BeElementOf(managerAccount, ""))
		workers := object(operatorNamespace, rayCluster("attempt", "{}"))
		Expect(unstructured.SetNestedSlice(workers.Object, []any{map[string]any{
			"groupName": "w", "rayStartParams": map[string]any{}, "template": map[string]any{"spec": map[string]any{
				"serviceAccountName": managerAccount, "containers": []any{map[string]any{"name": "w", "image": "i"}},
			}},
		}}, "spec", "workerGroupSpecs")).To(Succeed())
		Expect(as(rayUser).Create(ctx, workers, client.DryRunAll)).To(MatchError(ContainSubstring("it is the ServiceAccount of the manager")))
	}, NodeTimeout(specTimeout))

	It("cannot reference the CA key in fields outside the pod templates", func(ctx SpecContext) {
		ref := map[string]any{"name": webhookSecret, "key": "ca.key"}
		for path, value := range map[string]any{
			"autoscalerOptions":        map[string]any{"env": []any{map[string]any{"name": "A", "valueFrom": map[string]any{"secretKeyRef": ref}}}},
			"gcsFaultToleranceOptions": map[string]any{"redisAddress": "r:1", "redisPassword": map[string]any{"valueFrom": map[string]any{"secretKeyRef": ref}}},
		} {
			c := object(operatorNamespace, rayCluster("attempt", "{}"))
			Expect(unstructured.SetNestedField(c.Object, value, "spec", path)).To(Succeed())
			Expect(as(rayUser).Create(ctx, c, client.DryRunAll)).To(MatchError(ContainSubstring("it belongs to the manager")), path)
		}
	}, NodeTimeout(specTimeout))
})
