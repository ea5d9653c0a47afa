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

// expectRejected expects that the API server rejects the object with the message.
func expectRejected(who, namespace, text, message string) func(SpecContext) {
	return func(ctx SpecContext) {
		err := as(who).Create(ctx, object(namespace, text), client.DryRunAll)
		Expect(err).To(MatchError(ContainSubstring(message)))
		Expect(apierrors.ReasonForError(err)).To(BeElementOf(metav1.StatusReasonForbidden, metav1.StatusReasonInvalid))
	}
}

var _ = Describe("An editor of MLflow without other permissions", func() {
	for title, attempt := range map[string]struct{ spec, message string }{
		"the account of the manager":          {"{serviceAccountName: " + managerAccount + "}", "it is the ServiceAccount of the manager"},
		"another user's account":              {"{serviceAccountName: builder}", "create serviceaccounts/token builder"},
		"the key of the CA, as variables":     {"{envFrom: [{secretRef: {name: " + webhookSecret + "}}]}", "it belongs to the manager"},
		"the key of the CA, as a variable":    {"{env: [{name: A, valueFrom: {secretKeyRef: {name: " + webhookSecret + ", key: ca.key}}}]}", "it belongs to the manager"},
		"the key of the CA, as a database":    {"{backendStoreUri: null, backendStoreUriFrom: {name: " + webhookSecret + ", key: ca.key}}", "it belongs to the manager"},
		"the key of the CA, for images":       {"{imagePullSecrets: [{name: " + webhookSecret + "}]}", "it belongs to the manager"},
		"a foreign Secret":                    {"{envFrom: [{secretRef: {name: model-serving-etcd}}]}", "get secrets model-serving-etcd in namespace opendatahub"},
		"a foreign ConfigMap":                 {"{envFrom: [{configMapRef: {name: some}}]}", "get configmaps some"},
		"the traffic of the manager":          {"{podLabels: {platform.opendatahub.io/manager: odh-platform-operator, control-plane: controller-manager, app.kubernetes.io/name: odh-platform-operator}}", "the platform selects pods by it"},
		"traffic of the legacy manager":       {"{podLabels: {control-plane: controller-manager}}", "create pods"},
		"the traffic of a Ray head":           {"{podLabels: {ray.io/node-type: head}}", "the platform selects pods by it"},
		"the traffic of ModelMesh":            {"{podLabels: {modelmesh-service: modelmesh-serving}}", "the platform selects pods by it"},
		"an image":                            {"{image: {image: quay.io/evil/image}}", "create pods in namespace opendatahub"},
		"root on the node":                    {"{securityContext: {privileged: true}}", "Pod Security level baseline"},
		"capabilities":                        {"{securityContext: {capabilities: {add: [SYS_ADMIN]}}}", "Pod Security level baseline"},
		"all system calls":                    {"{podSecurityContext: {seccompProfile: {type: Unconfined}}}", "Pod Security level baseline"},
		"an identity of the cloud":            {"{serviceAccountAnnotations: {eks.amazonaws.com/role-arn: admin}}", "create serviceaccounts"},
		"data of another claim":               {"{storage: {dataSource: {kind: PersistentVolumeClaim, name: others}}}", "create persistentvolumeclaims"},
		"a foreign volume":                    {"{storage: {volumeName: others}}", "create persistentvolumeclaims"},
		"devices":                             {"{resourceClaims: [{name: gpu, resourceClaimName: others}]}", "create pods"},
		"settings of the kernel":              {"{podSecurityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}}", "Pod Security level baseline"},
		"a type of SELinux":                   {"{podSecurityContext: {seLinuxOptions: {type: spc_t}}}", "Pod Security level baseline"},
		"all of the system's proc":            {"{securityContext: {procMount: Unmasked}}", "Pod Security level baseline"},
		"the host of Windows":                 {"{podSecurityContext: {windowsOptions: {hostProcess: true}}}", "Pod Security level baseline"},
		"a container without AppArmor":        {"{securityContext: {appArmorProfile: {type: Unconfined}}}", "Pod Security level baseline"},
		"AppArmor profile by annotation":      {"{podAnnotations: {container.apparmor.security.beta.kubernetes.io/mlflow: unconfined}}", "Pod Security level baseline"},
		"a token of the manager":              {"{envFrom: [{secretRef: {name: " + managerAccount + "-token-x}}]}", "it belongs to the manager"},
		"the key of the CA, as a replica":     {"{readReplicaBackendStoreUriFrom: {name: " + webhookSecret + ", key: ca.key}}", "it belongs to the manager"},
		"the key of the CA, as another store": {"{registryStoreUriFrom: {name: " + webhookSecret + ", key: ca.key}}", "it belongs to the manager"},
		"a ConfigMap in a variable":           {"{env: [{name: A, valueFrom: {configMapKeyRef: {name: some, key: k}}}]}", "get configmaps some"},
		"foreign CAs":                         {"{caBundleConfigMap: {name: some, key: k}}", "get configmaps some"},
		"data of another namespace":           {"{storage: {dataSourceRef: {apiGroup: '', kind: PersistentVolumeClaim, name: others, namespace: kube-system}}}", "create persistentvolumeclaims"},
		"a folder of the node":                {"{volumes: [{name: v, hostPath: {path: /}}]}", "exactly one of configMap"},
		"a higher priority":                   {"{priorityClassName: system-node-critical}", "create pods"},
		"devices by a template":               {"{resourceClaims: [{name: gpu, resourceClaimTemplateName: others}]}", "create pods"},
		"annotation for another injector":     {"{podAnnotations: {vault.hashicorp.com/agent-inject: 'true'}}", "create pods"},
	} {
		It("does not get "+title, expectRejected(mlflowEditor, "", mlflow(attempt.spec), attempt.message), NodeTimeout(specTimeout))
	}

	It("cannot set pod fields outside the MLflow schema, nor create a second MLflow", func(ctx SpecContext) {
		m := object("", mlflow("{hostNetwork: true, hostPID: true, nodeName: n, schedulerName: s, automountServiceAccountToken: true, "+
			"serviceAccount: "+managerAccount+", initContainers: [{name: i, image: evil}], sidecars: [{name: s, image: evil}]}"))
		Expect(as(mlflowEditor).Create(ctx, m, client.DryRunAll)).To(Succeed())
		kept, want := m.Object["spec"], object("", mlflow("{}"))
		Expect(as(mlflowEditor).Create(ctx, want, client.DryRunAll)).To(Succeed())
		Expect(kept).To(Equal(want.Object["spec"]))
		second := object("", mlflow("{}"))
		second.SetName("")
		second.SetGenerateName("mlflow-")
		Expect(as(mlflowEditor).Create(ctx, second, client.DryRunAll)).To(MatchError(ContainSubstring("MLflow resource name must be 'mlflow'")))
	}, NodeTimeout(specTimeout))

	It("can create a server, and cannot change its immutable settings later", func(ctx SpecContext) {
		m := object("", mlflow("{}"))
		Expect(as(mlflowEditor).Create(ctx, m)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, m))).To(Succeed()) }, NodeTimeout(specTimeout))
		By("updating and applying like kubectl edit and kubectl apply")
		patch := merge(`{"spec":{"serviceAccountName":"` + managerAccount + `"}}`)
		Expect(as(mlflowEditor).Patch(ctx, m, patch)).To(MatchError(ContainSubstring("it is the ServiceAccount of the manager")))
		replicas := merge(`{"spec":{"replicas":2}}`)
		Expect(as(mlflowEditor).Patch(ctx, m, replicas)).To(Succeed())
		By("setting an image as an administrator, which the editor keeps")
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
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "the server was made: %v", err)
	}, NodeTimeout(specTimeout))
})

var _ = Describe("An editor of registries without other permissions", func() {
	external := func(more string) string { return "{postgres: {host: db, username: u, database: d, " + more + "}}" }
	for title, attempt := range map[string]struct{ namespace, name, spec, message string }{
		"the account pipeline":                                 {"", "pipeline", "{rest: {image: quay.io/evil/image}}", "is reserved for other objects"},
		"the account default":                                  {"", "default", "{rest: {image: quay.io/evil/image}}", "is reserved for other objects"},
		"the account of MLflow":                                {operatorNamespace, "mlflow-sa", "{}", "is reserved for other objects"},
		"the account of the manager, by name":                  {operatorNamespace, managerAccount, "{}", "is reserved for other objects"},
		"the name of the catalog":                              {"", "model-catalog", "{}", "is reserved for other objects"},
		"the name of a catalog of another":                     {"", "demo-catalog", "{}", "is reserved for other objects"},
		"database name of another registry":                    {"", "demo-postgres", "{}", "is reserved for other objects"},
		"the host of a Ray dashboard [B-5]":                    {"", "ray-dashboard-c-x", "{}", "is reserved for other objects"},
		"the host of a Ray client [B-5]":                       {"", "rayclient-c-x", "{}", "is reserved for other objects"},
		"the name of the webhooks":                             {operatorNamespace, "odh-platform-operator-webhook", "{}", "is reserved for other objects"},
		"the name of ModelMesh":                                {"", "modelmesh-serving", "{}", "is reserved for other objects"},
		"the Service of a Ray head":                            {"", "demo-head-svc", "{}", "is reserved for other objects"},
		"an image for the server":                              {"", "demo", "{rest: {image: quay.io/evil/image}}", "create pods"},
		"an image for the proxy":                               {"", "demo", "{kubeRBACProxy: {image: quay.io/evil/image}}", "create pods"},
		"an image for the database":                            {"", "demo", "{postgres: {generateDeployment: true, image: quay.io/evil/image}}", "create pods"},
		"the key of the CA":                                    {operatorNamespace, "demo", external("passwordSecret: {name: " + webhookSecret + ", key: ca.key}"), "it belongs to the manager"},
		"the key of the CA, for the proxy":                     {operatorNamespace, "demo", "{kubeRBACProxy: {tlsCertificateSecret: {name: " + webhookSecret + ", key: a}, tlsKeySecret: {name: " + webhookSecret + ", key: b}}}", "it belongs to the manager"},
		"a foreign password":                                   {"", "demo", external("passwordSecret: {name: other-credentials, key: password}"), "get secrets other-credentials"},
		"the password of etcd":                                 {"", "demo", external("sslMode: verify-full, sslRootCertificateSecret: {name: model-serving-etcd, key: etcd_connection}"), "get secrets model-serving-etcd"},
		"a foreign ConfigMap":                                  {"", "demo", external("sslRootCertificateConfigMap: {name: others, key: a}"), "get configmaps others"},
		"the key of a foreign client":                          {"", "demo", external("sslKeySecret: {name: other-credentials, key: k}"), "get secrets other-credentials"},
		"the password of a foreign key":                        {"", "demo", external("sslPasswordSecret: {name: other-credentials, key: k}"), "get secrets other-credentials"},
		"a foreign certificate":                                {"", "demo", "{kubeRBACProxy: {tlsCertificateSecret: {name: other-credentials, key: a}, tlsKeySecret: {name: other-credentials, key: b}}}", "get secrets other-credentials"},
		"a foreign password, by MySQL":                         {"", "demo", "{postgres: null, mysql: {host: db, username: u, database: d, passwordSecret: {name: other-credentials, key: k}}}", "get secrets other-credentials"},
		"a Secret of foreign CAs":                              {"", "demo", "{postgres: null, mysql: {host: db, username: u, database: d, sslRootCertificatesSecretName: other-credentials}}", "get secrets other-credentials"},
		"password from the Secret that the operator generates": {"", "demo", external("passwordSecret: {name: demo-postgres-credentials, key: k}"), `another server for Secret "demo-postgres-credentials"`},
		"key from the Secret that the operator generates":      {"", "demo", external("passwordSecret: {name: demo-kube-rbac-proxy, key: tls.key}"), `another server for Secret "demo-kube-rbac-proxy"`},
		"a foreign database":                                   {"", "demo", "{postgres: {connectionSecretName: other-credentials}}", "get secrets other-credentials"},
		"a foreign domain":                                     {"", "demo", "{kubeRBACProxy: {domain: apps.others.example.com}}", "routes/custom-host"},
	} {
		It("does not get "+title, func(ctx SpecContext) {
			namespace := attempt.namespace
			if namespace == "" {
				namespace = team
			}
			expectRejected(registryEditor, namespace, registry(attempt.name, attempt.spec), attempt.message)(ctx)
		}, NodeTimeout(specTimeout))
	}

	It("cannot get a reserved name by its prefix, nor an image through the annotation of the older version", func(ctx SpecContext) {
		begun := object(team, registry("x", "{}"))
		begun.SetName("")
		begun.SetGenerateName("modelmesh-serving-")
		Expect(as(registryEditor).Create(ctx, begun, client.DryRunAll)).To(MatchError(ContainSubstring("is reserved for other objects")))
		kept := object(team, registry("older", "{grpc: {}, kubeRBACProxy: null}"))
		kept.SetAPIVersion("modelregistry.opendatahub.io/v1alpha1")
		kept.SetAnnotations(map[string]string{"modelregistry.opendatahub.io/v1beta1-fields": `{"postgres":{"image":"quay.io/evil/image"}}`})
		Expect(as(registryEditor).Create(ctx, kept, client.DryRunAll)).To(MatchError(ContainSubstring("create pods")))
	}, NodeTimeout(specTimeout))

	It("cannot have the password of another user sent to its own server", func(ctx SpecContext) {
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

	It("can create a registry, and cannot read a Secret by changing it or through the older version", func(ctx SpecContext) {
		m := object(team, registry("honest", "{}"))
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

var _ = Describe("An editor of ServingRuntimes without other permissions", func() {
	container := func(more string) string { return "{containers: [{name: server, image: i, " + more + "}]}" }
	for title, attempt := range map[string]struct{ who, spec, message string }{
		"an image":                              {runtimeEditor, "{}", "create pods in namespace"},
		"a Secret in a volume":                  {runtimeEditor, "{volumes: [{name: v, secret: {secretName: other-credentials}}]}", "get secrets other-credentials"},
		"a Secret in a projected volume":        {runtimeEditor, "{volumes: [{name: v, projected: {sources: [{secret: {name: other-credentials}}]}}]}", "get secrets other-credentials"},
		"a Secret in a variable":                {runtimeEditor, container("env: [{name: A, valueFrom: {secretKeyRef: {name: model-serving-etcd, key: k}}}]"), "get secrets model-serving-etcd"},
		"a Secret in a variable of the adapter": {runtimeEditor, "{builtInAdapter: {serverType: mlserver, runtimeManagementPort: 8001, env: [{name: A, valueFrom: {secretKeyRef: {name: other-credentials, key: k}}}]}}", "get secrets other-credentials"},
		"a Secret for images":                   {runtimeEditor, "{imagePullSecrets: [{name: other-credentials}]}", "get secrets other-credentials"},
		"a token":                               {runtimeEditor, "{volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: token}}]}}]}", "token of a ServiceAccount"},
		"a foreign claim":                       {runtimeEditor, "{volumes: [{name: v, persistentVolumeClaim: {claimName: others}}]}", `volume "v"`},
		"token for another audience":            {runtimeEditor, "{volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: token, audience: vault}}]}}]}", "token of a ServiceAccount"},
		"ephemeral volume claim":                {runtimeEditor, "{volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {volumeName: others, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]}", `volume "v"`},
		"a driver with a foreign Secret":        {runtimeEditor, "{volumes: [{name: v, csi: {driver: d, nodePublishSecretRef: {name: other-credentials}}}]}", "get secrets other-credentials"},
		"a share of the network":                {runtimeEditor, "{volumes: [{name: v, nfs: {server: s, path: /}}]}", `volume "v"`},
		"a command when it starts":              {runtimeEditor, container("lifecycle: {postStart: {exec: {command: [sh]}}}"), `container "server"`},
		"probe of another host":                 {runtimeEditor, container("livenessProbe: {httpGet: {host: 169.254.169.254, port: 80}}"), `container "server"`},
		"variables of the loader of programs":   {runtimeEditor, "{builtInAdapter: {serverType: mlserver, runtimeManagementPort: 8001, env: [{name: LD_PRELOAD, value: /models/evil.so}]}}", `container "adapter"`},
		"all system calls":                      {developer, container("securityContext: {seccompProfile: {type: Unconfined}}"), "Pod Security level baseline"},
		"a type of SELinux":                     {developer, container("securityContext: {seLinuxOptions: {type: spc_t}}"), "Pod Security level baseline"},
		"the host of Windows":                   {developer, container("securityContext: {windowsOptions: {hostProcess: true}}"), "Pod Security level baseline"},
		"labels that select other pods":         {runtimeEditor, "{labels: {app: mlflow}}", `label of pods "app"`},
		"the folders of the node":               {developer, "{volumes: [{name: v, hostPath: {path: /}}]}", "Pod Security level baseline"},
		"a port of the node":                    {developer, container("ports: [{containerPort: 9000, hostPort: 80}]"), "Pod Security level baseline"},
		"root on the node":                      {developer, container("securityContext: {privileged: true}"), "Pod Security level baseline"},
		"capabilities":                          {developer, container("securityContext: {capabilities: {add: [NET_ADMIN]}}"), "Pod Security level baseline"},
		"the traffic of the manager":            {developer, "{labels: {platform.opendatahub.io/manager: odh-platform-operator}}", "the platform selects pods by it"},
	} {
		It("does not get "+title, func(ctx SpecContext) {
			err := as(attempt.who).Create(ctx, object(team, runtime("attempt", attempt.spec)), client.DryRunAll)
			Expect(err).To(HaveOccurred())
			Expect(apierrors.ReasonForError(err)).To(Equal(metav1.StatusReasonForbidden))
			Expect(err.Error()).To(ContainSubstring(attempt.message))
		}, NodeTimeout(specTimeout))
	}

	It("cannot get the key of the CA in the namespace of the manager, whatever its permissions", func(ctx SpecContext) {
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
		note := func(annotations string) error {
			return as(runtimeEditor).Patch(ctx, r.DeepCopy(), merge(`{"metadata":{"annotations":`+annotations+`}}`))
		}
		Expect(note(`{"enable-auth":"false"}`)).To(MatchError(ContainSubstring("create pods")))
		Expect(note(`{"enable-auth":null}`)).To(MatchError(ContainSubstring("create pods")))
		Expect(note(`{"enable-route":null}`)).To(Succeed())
		Expect(note(`{"enable-auth":"no"}`)).To(Succeed())
		Expect(note(`{"enable-route":"true"}`)).To(MatchError(ContainSubstring("create pods")))
	}, NodeTimeout(specTimeout))

	It("cannot turn a KServe runtime, which no webhook validates, into a ModelMesh runtime", func(ctx SpecContext) {
		r := object(team, runtime("single", "{multiModel: false, volumes: [{name: v, hostPath: {path: /}}]}"))
		Expect(as(runtimeEditor).Create(ctx, r)).To(Succeed())
		multi := merge(`{"spec":{"multiModel":true}}`)
		Expect(as(developer).Patch(ctx, r, multi)).To(MatchError(ContainSubstring("Pod Security level baseline")))
		Expect(as(runtimeEditor).Patch(ctx, r, multi)).To(MatchError(ContainSubstring("create pods")))
	}, NodeTimeout(specTimeout))
})

var _ = Describe("An editor of AppWrappers without other permissions", func() {
	const pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}"
	const rolebinding = "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: r}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}}"
	foreign := func() string { return registry("wrapped", "{}") }
	for title, attempt := range map[string]struct {
		who, namespace string
		components     func() []string
		message        string
	}{
		"a Pod":    {wrapperEditor, "", func() []string { return []string{pod} }, "is not authorized to create pods"},
		"a Job":    {wrapperEditor, "", func() []string { return []string{job("j", "{}")} }, "is not authorized to create jobs.batch"},
		"a Secret": {wrapperEditor, "", func() []string { return []string{pod, "{apiVersion: v1, kind: Secret, metadata: {name: s}}"} }, "is not authorized to create secrets"},
		"a token": {wrapperEditor, "", func() []string {
			return []string{pod, "{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: s, annotations: {kubernetes.io/service-account.name: default}}}"}
		}, "is not authorized to create secrets"},
		"a RoleBinding": {admin, "", func() []string { return []string{pod, rolebinding} }, "objects that grant permissions"},
		"a namespace":   {admin, "", func() []string { return []string{pod, "{apiVersion: v1, kind: Namespace, metadata: {name: mine}}"} }, "cluster-scoped"},
		"Pod in another namespace": {developer, "", func() []string {
			return []string{"{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: kube-system}, spec: {containers: [{name: c, image: i}]}}"}
		}, "other namespaces"},
		"an AppWrapper in it": {admin, "", func() []string { return []string{flow(wrapper(pod))} }, "Nested AppWrappers"},
		"a kind in another spelling": {admin, "", func() []string {
			return []string{"{apiVersion: workload.codeflare.dev/v1beta2, kind: APPWRAPPER, metadata: {name: x}}"}
		}, "Nested AppWrappers"},
		"an eviction": {developer, "", func() []string { return []string{pod, "{apiVersion: policy/v1, kind: Eviction, metadata: {name: p}}"} }, "the cluster serves no Eviction"},
		"requested token": {developer, "", func() []string {
			return []string{pod, "{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, metadata: {name: default}, spec: {audiences: []}}"}
		}, "the cluster serves no TokenRequest"},
		"an answer about rights": {wrapperEditor, "", func() []string {
			return []string{pod, "{apiVersion: authorization.k8s.io/v1, kind: LocalSubjectAccessReview, metadata: {name: x}}"}
		}, "is not authorized to create localsubjectaccessreviews"},
		"an MLflow":                  {admin, "", func() []string { return []string{pod, flow(mlflow("{}"))} }, "cluster-scoped"},
		"a Catalog of the manager's": {admin, "", func() []string { return []string{pod, flow(catalog("catalog", "{}"))} }, "the permissions of its creator limit its pods"},
		"the account of the manager, in older words": {admin, operatorNamespace, func() []string { return []string{job("j", "{serviceAccount: "+managerAccount+"}")} }, "it is the ServiceAccount of the manager"},
		"the key of the CA, for an init container": {admin, operatorNamespace, func() []string {
			return []string{job("j", "{initContainers: [{name: i, image: i, envFrom: [{secretRef: {name: "+webhookSecret+"}}]}]}")}
		}, "it belongs to the manager"},
		"the key of the CA, by a driver": {admin, operatorNamespace, func() []string {
			return []string{job("j", "{volumes: [{name: v, csi: {driver: d, nodePublishSecretRef: {name: "+webhookSecret+"}}}]}")}
		}, "it belongs to the manager"},
		"a registry of the manager's": {admin, "", func() []string { return []string{pod, flow(foreign())} }, "the permissions of its creator limit its pods"},
		"a runtime of the manager's":  {admin, "", func() []string { return []string{pod, flow(runtime("wrapped", "{}"))} }, "the permissions of its creator limit its pods"},
		"the account of the manager":  {admin, operatorNamespace, func() []string { return []string{job("j", "{serviceAccountName: "+managerAccount+"}")} }, "it is the ServiceAccount of the manager"},
		"the key of the CA": {admin, operatorNamespace, func() []string {
			return []string{job("j", "{volumes: [{name: v, secret: {secretName: "+webhookSecret+"}}]}")}
		}, "it belongs to the manager"},
	} {
		It("does not get "+title, func(ctx SpecContext) {
			namespace := attempt.namespace
			if namespace == "" {
				namespace = team
			}
			expectRejected(attempt.who, namespace, wrapper(attempt.components()...), attempt.message)(ctx)
		}, NodeTimeout(specTimeout))
	}

	It("cannot make the manager adopt foreign pods, nor add pods to the AppWrapper of another user", func(ctx SpecContext) {
		w := object(team, wrapper(job("queued", "{}")))
		Expect(unstructured.SetNestedField(w.Object, true, "spec", "suspend")).To(Succeed())
		Expect(as(admin).Create(ctx, w)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(as(wrapperEditor).Delete(ctx, w)).To(Succeed()) }, NodeTimeout(specTimeout))
		changeAs := func(who, path, value string) error {
			patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/spec/components/0/`+path+`","value":`+value+`}]`))
			return as(who).Patch(ctx, w.DeepCopy(), patch)
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
		"the key of the CA, as a volume":           {"{volumes: [{name: v, secret: {secretName: " + webhookSecret + "}}]}", "it belongs to the manager"},
		"the key of the CA, as variables":          {"{containers: [{name: head, image: i, envFrom: [{secretRef: {name: " + webhookSecret + "}}]}]}", "it belongs to the manager"},
		"the key of the CA, as a variable":         {"{containers: [{name: head, image: i, env: [{name: A, valueFrom: {secretKeyRef: {name: " + webhookSecret + ", key: ca.key}}}]}]}", "it belongs to the manager"},
		"the key of the CA, for images":            {"{imagePullSecrets: [{name: " + webhookSecret + "}]}", "it belongs to the manager"},
		"the key of the CA, projected":             {"{volumes: [{name: v, projected: {sources: [{secret: {name: " + webhookSecret + "}}]}}]}", "it belongs to the manager"},
		"the key of the CA, by a driver":           {"{volumes: [{name: v, csi: {driver: d, nodePublishSecretRef: {name: " + webhookSecret + "}}}]}", "it belongs to the manager"},
		"the key of the CA, before it":             {"{initContainers: [{name: i, image: i, envFrom: [{secretRef: {name: " + webhookSecret + "}}]}]}", "it belongs to the manager"},
		"key of the CA in an additional container": {"{containers: [{name: head, image: i}, {name: more, image: i, envFrom: [{secretRef: {name: " + webhookSecret + "}}]}]}", "it belongs to the manager"},
		"a token of the manager":                   {"{volumes: [{name: v, secret: {secretName: " + managerAccount + "-token-x}}]}", "it belongs to the manager"},
	} {
		It("does not get "+title, expectRejected(rayUser, operatorNamespace, rayCluster("attempt", attempt.pod), attempt.message), NodeTimeout(specTimeout))
	}

	It("cannot use the ServiceAccount of the manager: the head gets its own, and workers are rejected", func(ctx SpecContext) {
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

	It("cannot get the key of the CA through fields outside the pod templates", func(ctx SpecContext) {
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
