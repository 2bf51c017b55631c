// Kubernetes objects as JSON lines on standard input → for each that its published schema refuses, a line with why.
import { createInterface } from "node:readline";
import * as keda from "@kubernetes-models/keda/keda.sh/v1alpha1";
import * as apps from "kubernetes-models/apps/v1";
import * as networking from "kubernetes-models/networking.k8s.io/v1";
import * as core from "kubernetes-models/v1";

const models = { "keda.sh/v1alpha1": keda, "apps/v1": apps, "networking.k8s.io/v1": networking, v1: core };
for await (const line of createInterface({ input: process.stdin })) {
  const { apiVersion, kind, ...rest } = JSON.parse(line);
  const Model = models[apiVersion]?.[kind];
  try {
    if (!Model) throw new Error("there is no schema of it");
    new Model(rest).validate();
  } catch (error) {
    console.log(`${apiVersion} ${kind} ${rest.metadata?.name}: ${error.message}`);
  }
}
