// What the capture says wrote it.
#pragma once

namespace rangescope::inject {

#ifdef RANGESCOPE_VERSION
inline constexpr char kTool[] = "rangescope " RANGESCOPE_VERSION;
#else
inline constexpr char kTool[] = "rangescope";
#endif

}  // namespace rangescope::inject
