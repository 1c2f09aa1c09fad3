// A model of the operator of agent sessions that this project's takes the place of.
//
// It does what that one is known to do with the API server, and nothing else: no line
// of it is copied, and it starts no agent. Everything is cached and next to nothing is
// read from the cache; sessions are polled by phase; two gauges list all sessions every
// half minute; two watches without a beginning replay all projects. Each of these has a
// test in tests/operators/sessions/test_original.py.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

var version = schema.GroupVersion{Group: "vteam.ambient-code", Version: "v1alpha1"}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func object(kind string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{}
	made.SetGroupVersionKind(version.WithKind(kind))
	return made
}

func objects(kind string) *unstructured.UnstructuredList {
	made := &unstructured.UnstructuredList{}
	made.SetGroupVersionKind(version.WithKind(kind + "List"))
	return made
}

// config is a connection with its own limiter, of which there are two.
func config(kubeconfig, as string) *rest.Config {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}
	chosen := &clientcmd.ConfigOverrides{CurrentContext: as}
	made, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, chosen).ClientConfig()
	must(err)
	made.QPS, made.Burst = 100, 200
	return made
}

// changed lets through what the original reacts to; what it does not is cached all the same.
func changed() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := phaseOf(e.ObjectOld), phaseOf(e.ObjectNew)
		return before != after ||
			e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			fmt.Sprint(e.ObjectOld.GetAnnotations()) != fmt.Sprint(e.ObjectNew.GetAnnotations())
	}}
}

// ofRunner lets through runners' Pods, when their phase changes or a container ends.
func ofRunner() predicate.Predicate {
	named := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return strings.HasSuffix(o.GetName(), "-runner")
	})
	return predicate.And(named, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
		return before.Status.Phase != after.Status.Phase || ended(after) > ended(before)
	}})
}

func ended(pod *corev1.Pod) int {
	count := 0
	for _, each := range pod.Status.ContainerStatuses {
		if each.State.Terminated != nil {
			count++
		}
	}
	return count
}

// serve says that it is ready once the caches are, at an address of its own choice.
func serve(ctx context.Context, mgr ctrl.Manager) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	fmt.Fprintf(os.Stderr, "Health is at http://%s.\n", listener.Addr())
	http.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		soon, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(soon) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	go func() { _ = http.Serve(listener, nil) }()
}

func main() {
	kubeconfig := flag.String("path", os.Getenv("KUBECONFIG"), "the kubeconfig")
	as := flag.String("context", "", "the context")
	flag.Parse()
	log.SetLogger(zap.New(zap.UseDevMode(false), zap.WriteTo(os.Stderr)))
	scheme := runtime.NewScheme()
	must(clientgoscheme.AddToScheme(scheme))
	// No cache options, and so every session, Pod and field of them; and a client that
	// reads what is unstructured from the server, whatever is in the cache.
	mgr, err := ctrl.NewManager(config(*kubeconfig, *as), ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "127.0.0.1:0"},
	})
	must(err)
	live, err := client.NewWithWatch(config(*kubeconfig, *as), client.Options{Scheme: scheme})
	must(err)
	sessions := &sessions{manager: mgr.GetClient(), uncached: mgr.GetAPIReader(), live: live}
	must(ctrl.NewControllerManagedBy(mgr).
		Named("sessions").
		For(object("AgenticSession"), builder.WithPredicates(changed())).
		Owns(&corev1.Pod{}, builder.WithPredicates(ofRunner())).
		WithOptions(controller.Options{MaxConcurrentReconciles: 10}).
		Complete(sessions))
	ctx := ctrl.SetupSignalHandler()
	// Beside the manager: nobody cancels these, and no leader is asked.
	go namespaces(live)
	go settings(live)
	for _, phases := range [][]string{{"Running"}, {"Pending", "Creating"}} {
		go gauge(mgr.GetAPIReader(), phases)
	}
	serve(ctx, mgr)
	must(mgr.Start(ctx))
}
