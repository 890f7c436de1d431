import * as core from "echarts/core";
import { BarChart, CustomChart, LineChart, ScatterChart, TreemapChart } from "echarts/charts";
import { AriaComponent, DataZoomComponent, GridComponent, MarkLineComponent, TooltipComponent, LegendComponent } from "echarts/components";
import { CanvasRenderer, SVGRenderer } from "echarts/renderers";
import { Graph, layout } from "@dagrejs/dagre";
core.use([BarChart, CustomChart, LineChart, ScatterChart, TreemapChart, AriaComponent, DataZoomComponent, GridComponent, MarkLineComponent, TooltipComponent, LegendComponent, CanvasRenderer, SVGRenderer]);
export const init = core.init;
export const graphic = core.graphic;
export { Graph, layout };
