// The ant in three dimensions: spheres and capsules at the poses that the simulator had on its way.
import * as THREE from "./vendor/three.module.min.js";
import { POSITIVE, NEGATIVE, colour } from "./palette.js";

export class Body {
  constructor(canvas) {
    this.canvas = canvas;
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: true });
    this.scene = new THREE.Scene();
    this.camera = new THREE.PerspectiveCamera(40, 1, 0.1, 100);
    this.camera.up.set(0, 0, 1);
    this.turn = -2.0; this.lift = 0.6; this.distance = 5.5;
    this.scene.add(new THREE.HemisphereLight(0xffffff, 0x8890a0, 2.2));
    const sun = new THREE.DirectionalLight(0xffffff, 1.6);
    sun.position.set(3, -4, 8);
    this.scene.add(sun);
    this.targets = new THREE.Group();
    this.scene.add(this.targets);
    this.frames = []; this.focus = new THREE.Vector3(0, 0, 0.4);
    this.listen();
  }

  build(geometry, isDark) {
    if (this.ant) this.scene.remove(this.ant, this.floor);
    this.scene.background = new THREE.Color(isDark ? 0x1b1f25 : 0xffffff);
    this.floor = new THREE.LineSegments(new THREE.BufferGeometry().setFromPoints(squares(20)), new THREE.LineBasicMaterial({ color: isDark ? 0x454c56 : 0xcdd2d8 }));
    this.skin = new THREE.MeshStandardMaterial({ color: isDark ? 0xd6d9de : 0x4a525c, roughness: 0.65 });
    this.heart = new THREE.MeshStandardMaterial({ color: 0x4477aa, roughness: 0.5 });
    this.ant = new THREE.Group();
    this.parts = geometry.map(({ kind, size }, i) => {
      const shape = kind === "sphere" ? new THREE.SphereGeometry(size[0], 24, 16) : new THREE.CapsuleGeometry(size[0], 2 * size[1], 6, 14).rotateX(Math.PI / 2);
      const part = new THREE.Mesh(shape, i ? this.skin : this.heart);
      this.ant.add(part);
      return part;
    });
    this.scene.add(this.ant, this.floor);
  }

  // Rewards lie on the floor.
  paint(shapes) {
    for (const { geometry, material } of this.targets.children) { geometry.dispose(); material.dispose(); }
    this.targets.clear();
    for (const { kind, sign, numbers: n } of shapes) {
      const material = new THREE.MeshBasicMaterial({ color: sign > 0 ? POSITIVE : NEGATIVE, transparent: true, opacity: 0.35 });
      let flat;
      if (kind === "disc") { flat = new THREE.Mesh(new THREE.CircleGeometry(n[2], 48), material); flat.position.set(n[0], n[1], 0.01); }
      else if (kind === "box") { flat = new THREE.Mesh(new THREE.PlaneGeometry(Math.abs(n[2] - n[0]), Math.abs(n[3] - n[1])), material); flat.position.set((n[0] + n[2]) / 2, (n[1] + n[3]) / 2, 0.01); }
      else { flat = new THREE.Mesh(new THREE.PlaneGeometry(Math.hypot(n[2] - n[0], n[3] - n[1]), n[4]), material); flat.position.set((n[0] + n[2]) / 2, (n[1] + n[3]) / 2, 0.01); flat.rotation.z = Math.atan2(n[3] - n[1], n[2] - n[0]); }
      this.targets.add(flat);
    }
    this.render();
  }

  // The poses of a step are shown one after the other within its duration.
  move(poses, [frames, shapes], policy, seconds) {
    this.heart?.color.set(colour(policy));
    const one = 7 * shapes;
    this.frames = Array.from({ length: frames }, (_, i) => poses.subarray(i * one, (i + 1) * one));
    this.begun = performance.now();
    this.each = 1000 * seconds / frames;
    if (!this.isMoving) this.seen = this.begun;
    if (!this.isMoving) { this.isMoving = true; requestAnimationFrame(() => this.animate()); }
  }

  // Until the last pose is shown and the camera, which follows within a quarter of a second, is there.
  animate() {
    const now = performance.now(), at = Math.min(Math.floor((now - this.begun) / this.each), this.frames.length - 1);
    const frame = this.frames[at];
    this.parts?.forEach((part, i) => {
      part.position.set(frame[7 * i], frame[7 * i + 1], frame[7 * i + 2]);
      part.quaternion.set(frame[7 * i + 4], frame[7 * i + 5], frame[7 * i + 6], frame[7 * i + 3]);
    });
    const goal = this.parts?.[0].position ?? this.focus;
    this.focus.lerp(goal, 1 - Math.exp((this.seen - now) / 250));
    this.seen = now;
    this.render();
    if (at < this.frames.length - 1 || this.focus.distanceTo(goal) > 0.01) requestAnimationFrame(() => this.animate());
    else this.isMoving = false;
  }

  render() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height) return;
    this.renderer.setPixelRatio(Math.min(window.devicePixelRatio || 1, 2));
    this.renderer.setSize(width, height, false);
    this.camera.aspect = width / height;
    this.camera.updateProjectionMatrix();
    const flat = this.distance * Math.cos(this.lift);
    this.camera.position.set(this.focus.x + flat * Math.cos(this.turn), this.focus.y + flat * Math.sin(this.turn), this.focus.z + this.distance * Math.sin(this.lift));
    this.camera.lookAt(this.focus);
    this.renderer.render(this.scene, this.camera);
  }

  // Turns the view, lifts it, and goes nearer or away.
  look([turn, lift, zoom]) {
    this.turn += turn;
    this.lift = Math.max(0.1, Math.min(1.5, this.lift + lift));
    this.distance = Math.max(2, Math.min(25, this.distance * zoom));
    this.render();
  }

  listen() {
    let last = null;
    this.canvas.addEventListener("pointerdown", (event) => { last = [event.clientX, event.clientY]; this.canvas.setPointerCapture(event.pointerId); });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!last) return;
      this.look([-0.008 * (event.clientX - last[0]), 0.008 * (event.clientY - last[1]), 1]);
      last = [event.clientX, event.clientY];
    });
    this.canvas.addEventListener("pointerup", () => { last = null; });
    this.canvas.addEventListener("wheel", (event) => { event.preventDefault(); this.look([0, 0, Math.exp(0.0015 * event.deltaY)]); }, { passive: false });
    this.canvas.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: [0.1, 0, 1], ArrowRight: [-0.1, 0, 1], ArrowUp: [0, 0.08, 1], ArrowDown: [0, -0.08, 1], "+": [0, 0, 0.87], "-": [0, 0, 1.15] }[event.key];
      if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
      this.look(move);
      event.preventDefault();
    });
    new ResizeObserver(() => this.render()).observe(this.canvas);
  }
}

// The sides of unit squares on the floor: short lines, which are clipped well behind the camera.
function squares(half) {
  const points = [];
  for (let a = -half; a <= half; a++) {
    for (let b = -half; b < half; b++) points.push(new THREE.Vector3(a, b, 0), new THREE.Vector3(a, b + 1, 0), new THREE.Vector3(b, a, 0), new THREE.Vector3(b + 1, a, 0));
  }
  return points;
}
